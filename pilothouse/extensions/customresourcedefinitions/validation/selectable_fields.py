"""Fields that selectors may name: single strings, numbers and booleans outside of the metadata, and not too many."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.extensions.customresourcedefinitions.validation.ratcheting import MAX_SELECTABLE_FIELDS
from pilothouse.extensions.schema.field_paths import InvalidFieldPath, find_field
from pilothouse.extensions.schema.structural import Structural
from pilothouse.machinery.field import Errors, Path, duplicate, invalid, required, too_many
from pilothouse.machinery.objects import Json

_TYPES = ("string", "boolean", "integer")
_WRONG_TYPE = (
    "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."
)


def validate_selectable_fields(
    fields: Sequence[Json], schema: Structural, path: Path, *, allows_too_many: bool = False
) -> Errors:
    known: set[str] = set()
    for position, field in enumerate(fields):
        where, text = path.index(position).child("jsonPath"), field.get("jsonPath") or ""
        if not text:
            yield required(where)
            continue
        try:
            found = find_field(text, schema, brackets=False)
        except InvalidFieldPath as error:
            yield invalid(where, text, f"is an invalid path: {error}")
            continue
        if found.path.text.partition(".")[0] == "metadata":
            yield invalid(where, text, "must not point to fields in metadata")
        if found.schema is None or found.schema.type not in _TYPES:
            yield invalid(where, text, _WRONG_TYPE)
        if found.path.text in known:
            yield duplicate(where, text)
        known.add(found.path.text)
    if len(known) > MAX_SELECTABLE_FIELDS and not allows_too_many:
        yield too_many(path, len(known), MAX_SELECTABLE_FIELDS)
