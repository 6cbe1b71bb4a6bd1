"""Why a patch did not lead to a new object; each class is one answer to the client."""

from __future__ import annotations


class PatchError(Exception):
    """The root of all errors of a patch."""


class MalformedPatch(PatchError):
    """The body is no patch of its format: a bad request."""


class TooManyOperations(PatchError):
    """A JSON patch is longer than allowed: the request entity is too large."""


class PatchDoesNotApply(PatchError):
    """The patch is well formed but not for this object: an unprocessable entity, whose message clients do not see."""


class FailedTest(PatchDoesNotApply):
    """A test in a JSON patch did not hold."""


class PatchFailed(PatchError):
    """The patch contradicts itself or the type it is for: an internal error with this message and no reason."""
