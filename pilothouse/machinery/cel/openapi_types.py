"""The types of OpenAPI schemas as expressions see them. What a schema leaves open is not seen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pilothouse.machinery.cel.declared import Declared
from pilothouse.machinery.cel.names import escaped
from pilothouse.machinery.objects import Json

_STRINGS = {"byte": "bytes", "duration": "duration", "date": "timestamp", "date-time": "timestamp"}
_SCALARS = {"boolean": "bool", "number": "double", "integer": "int"}
_TEXT: Json = {"type": "string"}
_NAMED: Json = {"type": "object", "properties": {"name": _TEXT, "generateName": _TEXT}}


class OpenAPITypes:
    """`schemas` are a document's components, by their names."""

    def __init__(self, schemas: Mapping[str, Json]) -> None:
        self._schemas = schemas

    def of(self, schema: Json) -> Declared | None:
        """Return the type of a resource, whose kind and name are seen whatever its schema says."""
        properties = schema.get("properties") or {}
        identity = {"kind": _TEXT, "apiVersion": _TEXT} | ({} if "metadata" in properties else {"metadata": _NAMED})
        return self._declared({**schema, "type": "object", "properties": {**properties, **identity}}, ())

    def _declared(self, schema: Json, within: tuple[str, ...]) -> Declared | None:
        reference = _reference(schema)
        if reference in within:
            # A type that contains itself is seen as anything from there on.
            return Declared("dyn", 1)
        if reference:
            return self._declared(self._schemas.get(reference) or {}, (*within, reference))
        if schema.get("format") == "int-or-string" or schema.get("x-kubernetes-int-or-string"):
            return Declared("dyn", 1)
        if schema.get("type") == "array":
            return self._container("list", schema.get("items"), within)
        if schema.get("type") == "object":
            return self._object(schema, within)
        if schema.get("type") == "string":
            return Declared(_STRINGS.get(schema.get("format") or "", "string"), 1)
        kind = _SCALARS.get(schema.get("type") or "")
        return Declared(kind, 1) if kind else None

    def _container(self, kind: str, element: Any, within: tuple[str, ...]) -> Declared | None:
        inner = self._declared(element, within) if isinstance(element, dict) else None
        return None if inner is None else Declared(kind, 1, element=inner)

    def _object(self, schema: Json, within: tuple[str, ...]) -> Declared | None:
        if isinstance(schema.get("additionalProperties"), dict):
            return self._container("map", schema["additionalProperties"], within)
        fields: dict[str, Declared] = {}
        for name, child in (schema.get("properties") or {}).items():
            cel_name, declared = escaped(name), self._declared(child, within)
            if cel_name is not None and declared is not None:
                fields[cel_name] = declared
        return Declared("object", 1, fields=fields)


def _reference(schema: Json) -> str:
    """A reference may be wrapped, so that it can have a description."""
    for each in (schema, *(schema.get("allOf") or ())):
        if "$ref" in each:
            return str(each["$ref"]).rpartition("/")[2]
    return ""
