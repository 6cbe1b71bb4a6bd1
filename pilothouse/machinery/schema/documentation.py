"""The documentation of built-in types, from the packaged definitions."""

from __future__ import annotations

from pilothouse.machinery.generated import definitions


def of(definition: str, field: str) -> str:
    """What the field of a definition is for."""
    return str(definitions()[definition]["properties"][field].get("description", ""))
