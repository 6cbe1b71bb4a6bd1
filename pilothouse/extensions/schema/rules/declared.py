"""CEL types of schemas, with the maximum sizes of values for cost estimation."""

from __future__ import annotations

from pilothouse.extensions.schema.structural import Structural
from pilothouse.machinery.cel.declared import Declared
from pilothouse.machinery.cel.names import escaped
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

MAX_REQUEST_SIZE = 3 * 1024 * 1024
_LONGEST_STRING = MAX_REQUEST_SIZE - 2
_STRING = Structural({"type": "string"}, type="string")
_METADATA = Structural({"type": "object"}, type="object", properties={"name": _STRING, "generateName": _STRING})


@dataclass(frozen=True, slots=True)
class _Formatted:
    kind: str
    smallest: int
    longest: int


_FORMATS = {
    "byte": _Formatted("bytes", 2, _LONGEST_STRING),
    "duration": _Formatted("duration", 3, 32),
    "date": _Formatted("timestamp", 12, 12),
    "date-time": _Formatted("timestamp", 21, 32),
}
_SCALARS = {"boolean": ("bool", 4), "number": ("double", 1), "integer": ("int", 1)}


def declared_type(schema: Structural, *, root: bool) -> Declared | None:
    """Return the CEL type; None for values hidden from rules. root: the schema of a resource, whose type and name are
    always visible."""
    if schema.int_or_string:
        return Declared("dyn", 1, _string_length(schema.source))
    if schema.type == "array":
        element = declared_type(schema.items, root=schema.items.embedded_resource) if schema.items else None
        if element is None:
            return None
        most = schema.source.get("maxItems")
        count = max(most, 0) if most is not None else (MAX_REQUEST_SIZE - 2) // (element.min_size + 1)
        return Declared("list", 2, count, element=element)
    if schema.type == "object" and schema.additional is not None:
        assert schema.additional is not None
        element = declared_type(schema.additional, root=schema.additional.embedded_resource)
        if element is None:
            return None
        most = schema.source.get("maxProperties")
        count = max(most, 0) if most is not None else (MAX_REQUEST_SIZE - 2) // (element.min_size + 6)
        return Declared("map", 2, count, element=element)
    if schema.type == "object":
        return _object(with_type_and_name(schema) if root else schema)
    if schema.type == "string":
        source = schema.source
        formatted = _FORMATS.get(source.get("format") or "")
        if formatted is None:
            return Declared("string", 2, _string_length(source))
        longest = formatted.longest
        if formatted.kind == "bytes" and source.get("maxLength") is not None:
            longest = max(source["maxLength"], 0)
        return Declared(formatted.kind, formatted.smallest, longest)
    if schema.type in _SCALARS:
        kind, size = _SCALARS[schema.type]
        return Declared(kind, size)
    return None


def with_type_and_name(schema: Structural) -> Structural:
    properties = {**schema.properties, "kind": _STRING, "apiVersion": _STRING, "metadata": _METADATA}
    return Structural(schema.source, type=schema.type, properties=properties)


def _object(schema: Structural) -> Declared:
    required, size = schema.source.get("required") or [], 2
    fields: dict[str, Declared] = {}
    for name, child in schema.properties.items():
        declared = declared_type(child, root=child.embedded_resource)
        if declared is None:
            continue
        if (cel_name := escaped(name)) is not None:
            fields[cel_name] = declared
        if name in required and child.default is None:
            size += len(name.encode()) + declared.min_size + 4
    return Declared("object", size, fields=fields)


def _string_length(source: Json) -> int:
    """Return the maximum length in bytes; a character has up to four bytes."""
    if source.get("maxLength") is not None:
        return max(int(source["maxLength"]), 0) * 4
    if source.get("enum") and not source.get("x-kubernetes-int-or-string"):
        return max((len(text.encode()) for text in source["enum"] if isinstance(text, str)), default=0)
    return _LONGEST_STRING
