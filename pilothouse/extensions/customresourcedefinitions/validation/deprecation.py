"""The warning that a deprecated version gives."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from pilothouse.machinery.field import Errors, Path, invalid
from pilothouse.machinery.objects import Json

_MAX_LENGTH = 256
_PRINTABLE = "must only contain printable UTF-8 characters; "


def validate_deprecation_warning(version: Json, path: Path) -> Errors:
    warning: str | None = version.get("deprecationWarning")
    for problem in _problems(bool(version.get("deprecated")), warning):
        yield invalid(path.child("deprecationWarning"), warning, problem)


def _problems(deprecated: bool, warning: str | None) -> Iterator[str]:
    if warning is None:
        return
    if not deprecated:
        yield "can only be set for deprecated versions"
        return
    if len(warning.encode()) > _MAX_LENGTH:
        yield f"must be <= {_MAX_LENGTH} characters long"
    if not warning:
        yield "must not be an empty string"
    odd = next((position for position, char in enumerate(warning) if not _is_printable(char)), None)
    if odd is not None:
        yield f"{_PRINTABLE}non-printable character found at index {len(warning[:odd].encode())}"


def _is_printable(char: str) -> bool:
    """As Go has it: letters, marks, numbers, punctuation, symbols, and of the spaces only the plain one."""
    return char == " " or unicodedata.category(char)[0] in "LMNPS"
