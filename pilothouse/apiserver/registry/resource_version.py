"""Parsing of resource versions."""

from __future__ import annotations

from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json, resource_version_of
from pilothouse.machinery.status_error import StatusError

_UINT64_DIGITS = 20


def parse_resource_version(text: str) -> int:
    """Return the version that a request names; "" and "0" are 0. Raises an error without a reason, which becomes a
    500."""
    try:
        return _uint64(text)
    except ValueError as error:
        raise StatusError(f"resourceVersion: Invalid value: {quote(text)}: {error}") from None


def object_resource_version(obj: Json) -> int:
    """Return the version of an object; 0 if unset. The error does not name the field, as upstream."""
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
    # Reject long texts before the expensive conversion.
    if len(text.lstrip("0")) > _UINT64_DIGITS or int(text) >= 2**64:
        raise ValueError(f"strconv.ParseUint: parsing {quote(text)}: value out of range")
    return int(text)
