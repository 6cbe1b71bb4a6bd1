"""Query parameters as upstream's parameter codec reads them: Go's words for what cannot be read."""

from __future__ import annotations

from pilothouse.apiserver.http import Request
from pilothouse.machinery.errors import BadRequest
from pilothouse.machinery.gofmt import quote

_INT64 = range(-(2**63), 2**63)
_FALSE = ("false", "0")


def integer(request: Request, name: str) -> int | None:
    """Raises BadRequest."""
    values = request.query.get(name)
    if not values or values[0] == "":
        return None
    text = values[0]
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        raise BadRequest(f"strconv.ParseInt: parsing {quote(text)}: invalid syntax")
    if int(text) not in _INT64:
        raise BadRequest(f"strconv.ParseInt: parsing {quote(text)}: value out of range")
    return int(text)


def boolean(request: Request, name: str) -> bool | None:
    """Anything but false and 0 is true, also nothing: `?watch` and `?watch=`."""
    values = request.query.get(name)
    if not values:
        return None
    return values[0].lower() not in _FALSE
