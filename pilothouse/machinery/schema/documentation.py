"""The documentation of built-in types, from the packaged definitions."""

from __future__ import annotations

from pilothouse.machinery.generated import definitions, printed

_VALUES_OF_ENUM = "\n\nPossible enum values:"


def of(definition: str, field: str) -> str:
    """Return the description of a field, without the enum values, which only OpenAPI lists."""
    described = str(definitions()[definition]["properties"][field].get("description", ""))
    return described.partition(_VALUES_OF_ENUM)[0].rstrip("\n")


def of_column(definition: str, field: str) -> str:
    """Return the description of a printer column that shows a field."""
    return printed().get(f"{definition}.{field}") or of(definition, field)
