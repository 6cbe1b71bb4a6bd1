"""The fields of a structural schema, one by one, as people read about them."""

from __future__ import annotations

import json
from collections.abc import Iterator

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

_BOUNDS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "minProperties": "at least {} entries",
    "maxProperties": "at most {} entries",
    "multipleOf": "a multiple of {}",
    "pattern": "matches `{}`",
}


@dataclass(frozen=True, slots=True)
class Field:
    path: str
    """Such as spec.masts[].name."""
    type: str
    required: bool
    default: str | None
    """As JSON."""
    description: str
    """What the author wrote, and what the schema demands."""


def fields_of(schema: Json, path: str = "") -> Iterator[Field]:
    """Yield every field of an object, each before those inside it."""
    required = schema.get("required") or ()
    for name, child in (schema.get("properties") or {}).items():
        where = f"{path}{name}"
        default = json.dumps(child["default"], ensure_ascii=False) if "default" in child else None
        yield Field(where, type_of(child), name in required, default, " ".join(_description(child)))
        inner, suffix = _innermost(child)
        yield from fields_of(inner, f"{where}{suffix}.")


def type_of(schema: Json) -> str:
    """Return the type in short, such as []string or map[string]integer."""
    if "items" in schema:
        return f"[]{type_of(schema['items'])}"
    if isinstance(schema.get("additionalProperties"), dict):
        return f"map[string]{type_of(schema['additionalProperties'])}"
    if schema.get("x-kubernetes-int-or-string"):
        return "integer or string"
    kind = schema.get("type") or "any"
    return f"{kind} ({schema['format']})" if "format" in schema else kind


def _innermost(schema: Json) -> tuple[Json, str]:
    """Return the schema of what lists and maps hold in the end, and how one gets there."""
    suffix = ""
    while True:
        values = schema.get("additionalProperties")
        if "items" in schema:
            schema, suffix = schema["items"], f"{suffix}[]"
        elif isinstance(values, dict):
            schema, suffix = values, f"{suffix}{{}}"
        else:
            return schema, suffix


def _description(schema: Json) -> Iterator[str]:
    if "description" in schema:
        yield schema["description"]
    inner = schema.get("items", schema)
    if "enum" in inner:
        yield f"One of {', '.join(f'`{json.dumps(value)}`' for value in inner['enum'])}."
    if demanded := [text.format(schema[key]) for key, text in _BOUNDS.items() if key in schema]:
        yield f"Must be: {', '.join(demanded)}."
    if schema.get("nullable"):
        yield "May be null."
    for rule in schema.get("x-kubernetes-validations") or ():
        yield f"Rule: `{rule['rule']}`."
