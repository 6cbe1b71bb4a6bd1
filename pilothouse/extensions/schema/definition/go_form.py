"""Schemas and rules in the form of Go structs, for upstream's messages."""

from __future__ import annotations

from typing import Any

import orjson

from pilothouse.machinery.gofmt import escape_html
from pilothouse.machinery.objects import Json

_RULE = {
    "Rule": ("rule", ""),
    "Message": ("message", ""),
    "MessageExpression": ("messageExpression", ""),
    "Reason": ("reason", None),
    "FieldPath": ("fieldPath", ""),
    "OptionalOldSelf": ("optionalOldSelf", None),
}
_SCALARS_BEFORE = {
    "ID": ("id", ""),
    "Schema": ("$schema", ""),
    "Ref": ("$ref", None),
    "Description": ("description", ""),
    "Type": ("type", ""),
    "Nullable": ("nullable", False),
    "Format": ("format", ""),
    "Title": ("title", ""),
    "Default": ("default", None),
    "Maximum": ("maximum", None),
    "ExclusiveMaximum": ("exclusiveMaximum", False),
    "Minimum": ("minimum", None),
    "ExclusiveMinimum": ("exclusiveMinimum", False),
    "MaxLength": ("maxLength", None),
    "MinLength": ("minLength", None),
    "Pattern": ("pattern", ""),
    "MaxItems": ("maxItems", None),
    "MinItems": ("minItems", None),
    "UniqueItems": ("uniqueItems", False),
    "MultipleOf": ("multipleOf", None),
    "Enum": ("enum", None),
    "MaxProperties": ("maxProperties", None),
    "MinProperties": ("minProperties", None),
    "Required": ("required", None),
}
_SCALARS_AFTER = {
    "Example": ("example", None),
    "XPreserveUnknownFields": ("x-kubernetes-preserve-unknown-fields", None),
    "XEmbeddedResource": ("x-kubernetes-embedded-resource", False),
    "XIntOrString": ("x-kubernetes-int-or-string", False),
    "XListMapKeys": ("x-kubernetes-list-map-keys", None),
    "XListType": ("x-kubernetes-list-type", None),
    "XMapType": ("x-kubernetes-map-type", None),
}


def go_rule(rule: Json) -> orjson.Fragment:
    return _go_json(_rule(rule))


def go_schema(schema: Json) -> orjson.Fragment:
    return _go_json(_schema(schema))


def go_items(items: list[Json]) -> orjson.Fragment:
    return _go_json(_items(items))


def _go_json(value: Any) -> orjson.Fragment:
    return orjson.Fragment(escape_html(orjson.dumps(value).decode()))


def _rule(rule: Json) -> Json:
    return {name: rule.get(key, empty) for name, (key, empty) in _RULE.items()}


def _schema(schema: Json) -> Json:
    rules = schema.get("x-kubernetes-validations")
    return {
        **_plain(schema, _SCALARS_BEFORE),
        "Items": _items(schema.get("items")),
        **{name: _each(schema.get(key)) for name, key in (("AllOf", "allOf"), ("OneOf", "oneOf"), ("AnyOf", "anyOf"))},
        "Not": _schema(schema["not"]) if schema.get("not") is not None else None,
        "Properties": _by_name(schema.get("properties")),
        "AdditionalProperties": _or_bool(schema.get("additionalProperties")),
        "PatternProperties": _by_name(schema.get("patternProperties")),
        "Dependencies": _dependencies(schema.get("dependencies")),
        "AdditionalItems": _or_bool(schema.get("additionalItems")),
        "Definitions": _by_name(schema.get("definitions")),
        "ExternalDocs": _external_docs(schema.get("externalDocs")),
        **_plain(schema, _SCALARS_AFTER),
        "XValidations": None if rules is None else [_rule(rule) for rule in rules],
    }


def _plain(schema: Json, names: dict[str, tuple[str, Any]]) -> Json:
    return {name: schema.get(key, empty) for name, (key, empty) in names.items()}


def _items(items: Any) -> Json | None:
    if items is None:
        return None
    if isinstance(items, list):
        return {"Schema": None, "JSONSchemas": _each(items)}
    return {"Schema": _schema(items), "JSONSchemas": None}


def _each(schemas: list[Json] | None) -> list[Json] | None:
    return None if schemas is None else [_schema(schema) for schema in schemas]


def _by_name(schemas: dict[str, Json] | None) -> Json | None:
    return None if schemas is None else {name: _schema(schemas[name]) for name in sorted(schemas)}


def _dependencies(dependencies: Json | None) -> Json | None:
    if dependencies is None:
        return None
    return {
        name: {
            "Schema": _schema(needed) if isinstance(needed, dict) else None,
            "Property": needed if isinstance(needed, list) else None,
        }
        for name, needed in sorted(dependencies.items())
    }


def _external_docs(docs: Json | None) -> Json | None:
    return None if docs is None else {"Description": docs.get("description", ""), "URL": docs.get("url", "")}


def _or_bool(value: Any) -> Json | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return {"Allows": value, "Schema": None}
    return {"Allows": True, "Schema": _schema(value)}
