"""Parsing of resource versions."""

from __future__ import annotations

from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json, resource_version_of
from pilothouse.machinery.status_error import StatusError

_UINT64_DIGITS = 20


def parse_resource_version(text: str) -> int:
    """The version that a request asks for; "" and "0" are 0. Raises an error without a reason, hence a 500."""
    try:
        return _uint64(text)
    except ValueError as error:
        raise StatusError(f"resourceVersion: Invalid value: {quote(text)}: {error}") from None


def object_resource_version(obj: Json) -> int:
    """The version that an object carries, 0 where it has none. Upstream does not name the field when it is none."""
    try:
        return _uint64(resource_version_of(obj))
    except ValueError as error:
        raise StatusError(str(error)) from None


def _uint64(text: str) -> int:
    """Raises ValueError with Go's message."""
    if not text:
        return 0
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"strconv.ParseUint: parsing {quote(text)}: invalid syntax")
    # Longer texts are refused before the costly conversion.
    if len(text.lstrip("0")) > _UINT64_DIGITS or int(text) >= 2**64:
        raise ValueError(f"strconv.ParseUint: parsing {quote(text)}: value out of range")
    return int(text)
