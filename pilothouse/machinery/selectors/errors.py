"""Error of invalid selectors."""

from __future__ import annotations

from pilothouse.machinery.status_error import PilothouseError


class InvalidSelector(PilothouseError, ValueError):
    """The text or object is not a selector; the message is upstream's and suitable for a BadRequest.

    >>> from pilothouse.errors import InvalidSelector
    >>> issubclass(InvalidSelector, ValueError)
    True
    """
