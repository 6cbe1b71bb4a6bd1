"""The part of a field's OpenAPI schema that its Go type decides: type, format, reference.

args=4?:[]string   → {"items": {"type": "string"}, "type": "array"}
spec=2?:PodSpec    → {"$ref": "#/definitions/io.k8s.api.core.v1.PodSpec"}
"""

from __future__ import annotations

from collections.abc import Mapping

from pilothouse.machinery.objects import Json
from pilothouse.machinery.wire_facts import FieldFacts, Label, Package, definition_name

REFERENCE = "#/definitions/"

_SCALARS: dict[str, Json] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int32": {"format": "int32", "type": "integer"},
    "int64": {"format": "int64", "type": "integer"},
    "double": {"format": "double", "type": "number"},
    "bytes": {"format": "byte", "type": "string"},
}


def shape(fact: FieldFacts, packages: Mapping[str, Package]) -> Json:
    value = _value(fact.type, packages)
    if fact.label is Label.REPEATED:
        return {"items": value, "type": "array"}
    return {"additionalProperties": value, "type": "object"} if fact.label is Label.MAP else value


def _value(type_name: str, packages: Mapping[str, Package]) -> Json:
    if type_name in _SCALARS:
        return _SCALARS[type_name]
    package, _, message = type_name.rpartition(".")
    if package in packages and message in packages[package].lists:
        return {"items": {"type": "string"}, "type": "array"}
    return {"$ref": REFERENCE + definition_name(package, message)}


def shape_in(schema: Json) -> Json:
    """The same part of a published schema."""
    out = {key: schema[key] for key in ("type", "format", "$ref") if key in schema}
    nested = ((key, schema.get(key)) for key in ("items", "additionalProperties"))
    return out | {key: shape_in(child) for key, child in nested if isinstance(child, dict)}
