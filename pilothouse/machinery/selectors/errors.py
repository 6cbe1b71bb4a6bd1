"""Why a selector was refused."""

from __future__ import annotations

from pilothouse.machinery.status_error import PilothouseError


class InvalidSelector(PilothouseError, ValueError):
    """The text or object is no selector; the message is upstream's and fit for a BadRequest.

    >>> from pilothouse.errors import InvalidSelector
    >>> issubclass(InvalidSelector, ValueError)
    True
    """
