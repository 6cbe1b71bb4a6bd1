"""Definitions: the schemas that documents speak of, each as the bytes that are written into documents.

The packaged ones are in the form of OpenAPI v2. Version 3 shows more (what Go's zero values make of absent fields, and
which fields have defaults) and wants references to stand alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import Protocol

import orjson

from pilothouse.apiserver.openapi.defaults import defaults_of
from pilothouse.apiserver.openapi.key_order import ordered_schema
from pilothouse.machinery.compact_bytes import copy_compact
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.generated import definitions
from pilothouse.machinery.objects import Json

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
"""Types that have more than one JSON form, which version 2 cannot say."""


@dataclass(frozen=True, slots=True)
class Definition:
    """`references` are the names of the definitions that this one refers to."""

    json: bytes
    references: tuple[str, ...]

    @classmethod
    def of(cls, schema: Json) -> Definition:
        encoded = copy_compact(orjson.dumps(ordered_schema(schema)))
        return cls(encoded, tuple({name.decode() for name in _REFERENCE.findall(encoded)}))


class OpenAPIDefinitions(Protocol):
    """Both raise KeyError for a name that there is no definition for."""

    def v2(self, name: str) -> Definition: ...

    def v3(self, name: str) -> Definition: ...


class PackagedDefinitions:
    """The definitions of the built-in kinds, each made once."""

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
    """Return the definitions of these names and all that they refer to.

    A name that `definition` raises KeyError for is that of some object: a kind that nobody described can be used.
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
    for field, default in defaults_of(name).items():
        target = out["properties"][field]
        for _ in range(default.depth):
            target = next(target[key] for key in _CHILDREN if key in target)
        target["default"] = default.value
    return _stand_alone(out)


def schema_as_v3(schema: Json) -> Json:
    """A deep copy with version 3's references."""
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
    """Beside a reference nothing else may stand in version 3; where something does, the reference goes into allOf."""
    if "$ref" in schema and len(schema) > 1:
        schema["allOf"] = [{"$ref": schema.pop("$ref")}]
    for key in _CHILDREN:
        if isinstance(schema.get(key), dict):
            _stand_alone(schema[key])
    for child in schema.get("properties", {}).values():
        _stand_alone(child)
    return schema
