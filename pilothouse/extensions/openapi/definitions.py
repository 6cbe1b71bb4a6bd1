"""OpenAPI definitions of the custom resources of one group version, on top of the packaged definitions.

kubectl validates with v2 and rejects many constructs. So v2 omits defaults, alternatives, types of nullable values, and
the content of objects that preserve unknown fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import cache, cached_property
from typing import Any

import orjson

from pilothouse.apiserver.openapi.definitions import (
    META,
    PACKAGED,
    V2_REFERENCE,
    V3_REFERENCE,
    Definition,
    definition_of,
)
from pilothouse.apiserver.openapi.verbs import DELETE_BODY
from pilothouse.extensions.customresources.model import CustomResource
from pilothouse.extensions.schema.structural import EMBEDDED, INT_OR_STRING, PRESERVE
from pilothouse.machinery.names import GroupVersion, GroupVersionKind
from pilothouse.machinery.objects import Json
from pilothouse.machinery.schema import documentation

_KINDS = "x-kubernetes-group-version-kind"
_NOT_OF_CLIENTS = frozenset(
    {"admission.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "imagepolicy.k8s.io"}
)
_SELECTABLE = "x-kubernetes-selectable-fields"
_RULE_FIELDS = ("rule", "message", "messageExpression", "reason", "fieldPath", "optionalOldSelf")
_LARGEST = 2**64
"""orjson writes integers of 64 bits only."""


class CustomDefinitions:
    """Built with the first document."""

    def __init__(self, resources: Callable[[], Iterable[CustomResource]], group_version: GroupVersion) -> None:
        self._resources = resources
        self._group_version = group_version

    def v2(self, name: str) -> Definition:
        return self._own_v2.get(name) or PACKAGED.v2(name)

    def v3(self, name: str) -> Definition:
        return self._own_v3.get(name) or (_delete_options() if name == DELETE_BODY else PACKAGED.v3(name))

    @cached_property
    def _own_v2(self) -> dict[str, Definition]:
        return self._made(lambda resource: _v2_of(resource, self._group_version.version), v2=True)

    @cached_property
    def _own_v3(self) -> dict[str, Definition]:
        return self._made(lambda resource: _v3_of(resource, self._group_version.version), v2=False)

    def _made(self, schema_of: Callable[[CustomResource], Json], *, v2: bool) -> dict[str, Definition]:
        definitions: dict[str, Definition] = {}
        for resource in self._resources():
            kind, names = resource.kind(self._group_version.version), resource.names
            listed, own = self._group_version.kind(names.list_kind), definition_of(kind)
            schema = list_schema(own, kind=names.kind, list_kind=names.list_kind, plural=names.plural, v2=v2)
            paths = [path.removeprefix(".") for path in resource.versions[kind.version].selectable_fields]
            selectable = {_SELECTABLE: [{"fieldPath": path} for path in paths]} if paths else {}
            definitions[own] = Definition.of(schema_of(resource) | _kinds(kind) | selectable)
            definitions[definition_of(listed)] = Definition.of(schema | _kinds(listed) | selectable)
        return definitions


@cache
def _delete_options() -> Definition:
    """Return DeleteOptions with the groups that upstream's client scheme registers."""
    schema: Json = orjson.loads(PACKAGED.v3(DELETE_BODY).json)
    return Definition.of(schema | {_KINDS: [kind for kind in schema[_KINDS] if kind["group"] not in _NOT_OF_CLIENTS]})


def _v2_of(resource: CustomResource, version: str) -> Json:
    schema = resource.versions[version].schema
    if schema is None:
        return {"type": "object"}
    return v2_schema(schema, preserve_unknown_fields=bool(resource.spec.get("preserveUnknownFields")))


def _v3_of(resource: CustomResource, version: str) -> Json:
    schema = resource.versions[version].schema
    return {"type": "object"} if schema is None else v3_schema(schema)


def _kinds(kind: GroupVersionKind) -> Json:
    return {_KINDS: [{"group": kind.group, "kind": kind.kind, "version": kind.version}]}


_POD, _POD_LIST = "io.k8s.api.core.v1.Pod", "io.k8s.api.core.v1.PodList"
_ALTERNATIVES = ("allOf", "anyOf", "oneOf", "not")
_CONVENTIONS = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
_EMBEDDED_TYPE: dict[str, Json] = {
    "apiVersion": {
        "description": "apiVersion defines the versioned schema of this representation of an object. "
        f"More info: {_CONVENTIONS}#resources",
        "type": "string",
    },
    "kind": {
        "description": "kind is a string value representing the type of this object. In CamelCase. "
        f"More info: {_CONVENTIONS}#types-kinds",
        "type": "string",
    },
}


def v3_schema(schema: Json) -> Json:
    out = _mapped(_as_go(schema), _unfold)
    _add_embedded(out, _v3_metadata())
    out["properties"] = (out.get("properties") or {}) | _type_meta() | {"metadata": _v3_metadata()}
    return out


def v2_schema(schema: Json, *, preserve_unknown_fields: bool) -> Json:
    if preserve_unknown_fields or schema.get(PRESERVE):
        # With any property, kubectl would reject all other fields.
        return {"type": "object"}
    out = _mapped(_as_go(schema), _as_v2)
    metadata = {"$ref": f"{V2_REFERENCE}{META}.ObjectMeta", "description": documentation.of(_POD, "metadata")}
    _add_embedded(out, metadata, but_where_unknown=True)
    out["properties"] = (out.get("properties") or {}) | _type_meta() | {"metadata": metadata}
    return out


def list_schema(item: str, *, kind: str, list_kind: str, plural: str, v2: bool) -> Json:
    """`item`: name of the item's definition."""
    prefix = V2_REFERENCE if v2 else V3_REFERENCE
    reference = {"$ref": f"{prefix}{META}.ListMeta"}
    described = {"description": documentation.of(_POD_LIST, "metadata")}
    items = {
        "description": f"List of {plural}. More info: {_CONVENTIONS}",
        "items": {"$ref": prefix + item},
        "type": "array",
    }
    metadata = described | (reference if v2 else {"allOf": [reference]})
    return {
        "description": f"{list_kind} is a list of {kind}",
        "properties": {**_type_meta(), "items": items, "metadata": metadata},
        "required": ["items"],
        "type": "object",
    }


def _type_meta() -> Json:
    return {name: {"description": documentation.of(_POD, name), "type": "string"} for name in ("apiVersion", "kind")}


def _v3_metadata() -> Json:
    return {
        "allOf": [{"$ref": f"{V3_REFERENCE}{META}.ObjectMeta"}],
        "description": documentation.of(_POD, "metadata"),
    }


def _as_go(schema: Json) -> Json:
    """Return a copy with the numbers and the validation rules as Go encodes them."""
    return {key: _value_as_go(key, value) for key, value in schema.items()}


def _value_as_go(key: str, value: Any) -> Any:
    match key:
        case "properties":
            return {name: _as_go(child) for name, child in value.items()}
        case "items" | "additionalProperties" | "not" if isinstance(value, dict):
            return _as_go(value)
        case "allOf" | "anyOf" | "oneOf":
            return [_as_go(child) for child in value]
        case "x-kubernetes-validations":
            return [{name: rule[name] for name in _RULE_FIELDS if name in rule} for rule in value]
        case "maximum" | "minimum" | "multipleOf":
            return _go_number(float(value))
        case "default" | "enum" | "example":
            return _go_numbers(value)
        case _:
            return value


def _go_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _go_numbers(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_go_numbers(item) for item in value]
    return _go_number(value) if isinstance(value, float) else value


def _go_number(number: float) -> int | float:
    """Return a whole number as the integer with its shortest digits: 10.0 is 10, and 2.0**60 is 1152921504606847000."""
    shortest = Decimal(repr(number))
    is_whole = -_LARGEST // 2 <= shortest < _LARGEST and shortest == shortest.to_integral_value()
    return int(shortest) if is_whole else number


def _mapped(schema: Json, change: Callable[[Json], None]) -> Json:
    """Return a copy with `change` applied to every nested schema, outermost first."""
    out = dict(schema)
    change(out)
    if out.get("properties"):
        out["properties"] = {name: _mapped(child, change) for name, child in out["properties"].items()}
    for part in ("items", "additionalProperties"):
        if isinstance(out.get(part), dict):
            out[part] = _mapped(out[part], change)
    return out


def _unfold(schema: Json) -> None:
    if not schema.get(INT_OR_STRING):
        return
    either = [{"type": "integer"}, {"type": "string"}]
    if schema.get("anyOf") == either or (schema.get("allOf") or [{}])[0].get("anyOf") == either:
        return
    if "anyOf" not in schema:
        schema["anyOf"] = either
    else:
        schema["allOf"] = [{"anyOf": either}, *(schema.get("allOf") or ())]


def _as_v2(schema: Json) -> None:
    for name in (*_ALTERNATIVES, "default"):
        schema.pop(name, None)
    nullable = schema.pop("nullable", False)
    if nullable:
        _drop(schema, "type", "items", "properties")
    if schema.get(PRESERVE):
        _drop(schema, "items", "properties")
    if schema.get("type") == "array" and "items" not in schema:
        _drop(schema, "type")
    if schema.get(PRESERVE) and schema.get("type") == "object":
        _drop(schema, "type")
    _relax_required(schema)


def _relax_required(schema: Json) -> None:
    """Remove nullable fields from `required`."""
    required: list[str] = schema.get("required") or []
    properties: dict[str, Any] = schema.get("properties") or {}
    remaining = [name for name in required if not (properties.get(name) or {}).get("nullable")]
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict) and additional.get("nullable"):
        remaining = []
    if remaining:
        schema["required"] = remaining
    else:
        schema.pop("required", None)


def _drop(schema: Json, *names: str) -> None:
    for name in names:
        schema.pop(name, None)


def _add_embedded(schema: Json, metadata: Json, *, but_where_unknown: bool = False) -> None:
    for child in (schema.get("properties") or {}).values():
        _add_embedded(child, metadata, but_where_unknown=but_where_unknown)
    for part in ("items", "additionalProperties"):
        if isinstance(schema.get(part), dict):
            _add_embedded(schema[part], metadata, but_where_unknown=but_where_unknown)
    if not schema.get(EMBEDDED) or (but_where_unknown and schema.get(PRESERVE)):
        return
    schema["properties"] = (schema.get("properties") or {}) | _EMBEDDED_TYPE | {"metadata": metadata}
    required = schema.get("required") or []
    schema["required"] = [*required, *(name for name in ("kind", "apiVersion") if name not in required)]
