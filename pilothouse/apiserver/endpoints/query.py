"""Query parameters as upstream's parameter codec reads them: Go's words for what cannot be read."""

from __future__ import annotations

from pilothouse.apiserver.http import Request
from pilothouse.machinery.errors import BadRequest
from pilothouse.machinery.integers import parse_int64

_FALSE = ("false", "0")


def integer(request: Request, name: str) -> int | None:
    """Raises BadRequest."""
    values = request.query.get(name)
    if not values or values[0] == "":
        return None
    try:
        return parse_int64(values[0])
    except ValueError as error:
        raise BadRequest(str(error)) from None


def boolean(request: Request, name: str) -> bool | None:
    """Anything but false and 0 is true, also nothing: `?watch` and `?watch=`."""
    values = request.query.get(name)
    if not values:
        return None
    return values[0].lower() not in _FALSE
