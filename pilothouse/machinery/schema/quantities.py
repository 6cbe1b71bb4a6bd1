"""Quantities as Go reads them from JSON and prints them again."""

from __future__ import annotations

import re
from typing import Any

from pilothouse.machinery.codec.document import is_number, spelling

_FORM = re.compile(r"([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)")
_WRONG_FORM = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


class QuantityError(ValueError):
    """The message is Go's."""


def canonical_quantity(value: Any) -> str:
    """A number is read as it is spelled, a string without the spaces around it."""
    text = spelling(value) if is_number(value) else value.strip() if isinstance(value, str) else ""
    if not _FORM.fullmatch(text):
        raise QuantityError(_WRONG_FORM)
    return text
