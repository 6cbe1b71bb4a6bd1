"""Errors of patches; each class maps to one response."""

from __future__ import annotations


class PatchError(Exception):
    """Base of all patch errors."""


class MalformedPatch(PatchError):
    """The body is not a patch of its format: 400."""


class TooManyOperations(PatchError):
    """A JSON patch has too many operations: 413."""


class PatchDoesNotApply(PatchError):
    """The patch is well-formed but not applicable to the object: 422; clients do not see the message."""


class FailedTest(PatchDoesNotApply):
    """A `test` operation of a JSON patch failed."""


class PatchFailed(PatchError):
    """The patch contradicts itself or the type: 500 with this message and without a reason."""
