"""Definitions: the schemas of documents, as encoded bytes.

Packaged definitions have the OpenAPI v2 format. Version 3 has more information (zero values of Go, defaults), and
references must have no siblings. Keys have upstream's order, so that equal documents have equal bytes and hashes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, Protocol

import orjson

from pilothouse.machinery import wire_facts
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.generated import declared_default, definitions
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json, copy_compact
from pilothouse.machinery.version_rules import holds

V2_REFERENCE, V3_REFERENCE = "#/definitions/", "#/components/schemas/"

_REFERENCE = re.compile(rb'"\$ref":"#/(?:definitions|components/schemas)/([^"]+)"')
_CHILDREN = ("items", "additionalProperties")
_MANY_FORMS: dict[str, Json] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {
        "format": "int-or-string",
        "oneOf": [{"type": "integer"}, {"type": "string"}],
    },
}
"""Types with several JSON forms, which version 2 cannot express."""


@dataclass(frozen=True, slots=True)
class Definition:
    """`references` are the names of referenced definitions."""

    json: bytes
    references: tuple[str, ...]

    @classmethod
    def of(cls, schema: Json) -> Definition:
        encoded = copy_compact(orjson.dumps(ordered_schema(schema)))
        return cls(encoded, tuple({name.decode() for name in _REFERENCE.findall(encoded)}))


class OpenAPIDefinitions(Protocol):
    """Both methods raise KeyError for an unknown name."""

    def v2(self, name: str) -> Definition: ...

    def v3(self, name: str) -> Definition: ...


class PackagedDefinitions:
    """The definitions of the built-in kinds, each built once."""

    @staticmethod
    @cache
    def v2(name: str) -> Definition:
        return Definition.of(definitions()[name])

    @staticmethod
    @cache
    def v3(name: str) -> Definition:
        return Definition.of(_as_v3(name, definitions()[name]))


PACKAGED = PackagedDefinitions()


_ANY_OBJECT = Definition(b'{"type":"object"}', ())


def reachable(roots: Iterable[str], definition: Callable[[str], Definition]) -> dict[str, Definition]:
    """Return the named definitions and all definitions that they reference.

    A name for which `definition` raises KeyError gets the schema of an arbitrary object, so that kinds without a
    description can be used.
    """
    found: dict[str, Definition] = {}
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name not in found:
            try:
                found[name] = definition(name)
            except KeyError:
                found[name] = _ANY_OBJECT
            waiting.extend(found[name].references)
    return found


def _as_v3(name: str, schema: Json) -> Json:
    if name in _MANY_FORMS:
        return {"description": schema["description"]} | _MANY_FORMS[name]
    out = schema_as_v3(schema)
    defaults = defaults_of(name)
    if not holds("ItemDefaultsInOpenAPI"):
        defaults = {field: default for field, default in defaults.items() if not default.depth}
    for field, default in defaults.items():
        target = out["properties"][field]
        for _ in range(default.depth):
            target = next(target[key] for key in _CHILDREN if key in target)
        target["default"] = default.value
    return _stand_alone(out)


def schema_as_v3(schema: Json) -> Json:
    """Return a deep copy with references in the v3 format."""
    out = dict(schema)
    if "$ref" in out:
        out["$ref"] = out["$ref"].replace(V2_REFERENCE, V3_REFERENCE)
    for key in _CHILDREN:
        if isinstance(out.get(key), dict):
            out[key] = schema_as_v3(out[key])
    if "properties" in out:
        out["properties"] = {name: schema_as_v3(child) for name, child in out["properties"].items()}
    return out


def _stand_alone(schema: Json) -> Json:
    """Wrap a reference that has siblings into allOf, as version 3 requires."""
    if "$ref" in schema and len(schema) > 1:
        schema["allOf"] = [{"$ref": schema.pop("$ref")}]
    for key in _CHILDREN:
        if isinstance(schema.get(key), dict):
            _stand_alone(schema[key])
    for child in schema.get("properties", {}).values():
        _stand_alone(child)
    return schema


_ZERO: dict[str, Any] = {"string": "", "bool": False, "int32": 0, "int64": 0, "double": 0}
_VERSION_INFO = "io.k8s.apimachinery.pkg.version.Info"
"""Has no protobuf form and thus no facts; all fields are strings."""


@dataclass(frozen=True, slots=True)
class Default:
    value: Any
    depth: int = 0
    """The nesting depth in lists and maps: 1 for the items of a list."""


def defaults_of(definition: str) -> dict[str, Default]:
    """Return field -> default for version 3: declared defaults, and Go's zero values of fields that are always present.

    Container.name=string  → ""        PodSpec.containers=[]Container → {} for each        Probe.port=*int32 → none

    Empty if the definition is not a struct of the built-in kinds.
    """
    if definition == _VERSION_INFO:
        return {field: Default("") for field in definitions()[definition]["required"]}
    name = wire_facts.message_named(definition)
    try:
        return dict(_defaults(name.package, name.message, definition))
    except KeyError:
        return {}


def _defaults(package: str, message: str, definition: str) -> Iterator[tuple[str, Default]]:
    for fact in wire_facts.facts_of(package, message).values():
        if fact.inline:
            inner, _, name = fact.type.rpartition(".")
            yield from _defaults(inner, name, wire_facts.definition_name(inner, name))
            continue
        declared = declared_default(definition, fact.name)
        default = _zero(fact) if declared is None else Default(declared)
        if default is not None:
            yield fact.name, default


def _zero(fact: wire_facts.FieldFacts) -> Default | None:
    depth = int(fact.label is not wire_facts.Label.OPTIONAL)
    if wire_facts.is_list(*fact.type.rpartition(".")[::2]):
        return Default("", depth + 1)
    value = _zero_of(fact.type)
    if value is None or (fact.label is wire_facts.Label.OPTIONAL and fact.pointer):
        return None
    if fact.label is wire_facts.Label.OPTIONAL and fact.omitempty and fact.type in _ZERO:
        return None
    return Default(value, depth)


def _zero_of(type_name: str) -> Any:
    """Return the zero value of a scalar or struct; None for other types, such as times and quantities."""
    if type_name in _ZERO:
        return _ZERO[type_name]
    return {} if _is_struct(type_name) else None


@cache
def _is_struct(type_name: str) -> bool:
    package, _, message = type_name.rpartition(".")
    try:
        wire_facts.facts_of(package, message)
    except KeyError:
        return False
    return True


META = "io.k8s.apimachinery.pkg.apis.meta.v1"


def definition_of(kind: GroupVersionKind) -> str:
    message = wire_facts.message_of(kind)
    if message is not None:
        return wire_facts.definition_name(message.package, message.message)
    return ".".join((*reversed(kind.group.split(".")), kind.version, kind.kind))


_SCHEMA = (
    *("id", "description", "type", "nullable", "format", "title", "default"),
    *("maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "maxLength", "minLength", "pattern"),
    *("maxItems", "minItems", "uniqueItems", "multipleOf", "enum", "maxProperties", "minProperties", "required"),
    *("items", "allOf", "oneOf", "anyOf", "not", "properties", "additionalProperties", "patternProperties"),
    *("dependencies", "additionalItems", "definitions", "discriminator", "readOnly", "externalDocs", "example"),
    *("$schema", "$ref"),
)
_PLACE = {key: place for place, key in enumerate(_SCHEMA)}
_SCHEMAS_BY_NAME = frozenset({"properties", "patternProperties", "definitions"})
_SCHEMAS = frozenset({"items", "allOf", "oneOf", "anyOf", "not", "additionalProperties", "additionalItems"})


def ordered_schema(schema: Any) -> Any:
    """Return a copy in upstream's order, including nested schemas. Validation rules keep the order of their keys: maps
    of Go are sorted already, structs are not."""
    if isinstance(schema, list):
        return [ordered_schema(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _value(key, schema[key]) for key in sorted(schema, key=_place)}


def _place(key: str) -> tuple[int, str]:
    return _PLACE.get(key, len(_SCHEMA)), key


def _value(key: str, value: Any) -> Any:
    if key in _SCHEMAS_BY_NAME:
        return {name: ordered_schema(value[name]) for name in sorted(value)}
    if key == "x-kubernetes-validations":
        return value
    return ordered_schema(value) if key in _SCHEMAS else by_name(value)


def by_name(value: Any) -> Any:
    """Return a copy with sorted keys, as Go encodes maps."""
    if isinstance(value, list):
        return [by_name(each) for each in value]
    return {key: by_name(value[key]) for key in sorted(value)} if isinstance(value, dict) else value


def html_safe(document: bytes) -> bytes:
    """Escape the characters that Go's JSON escapes for HTML. In JSON they occur in strings only."""
    return document.replace(b"<", rb"\u003c").replace(b">", rb"\u003e").replace(b"&", rb"\u0026")
