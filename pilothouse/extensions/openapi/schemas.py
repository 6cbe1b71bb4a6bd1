"""OpenAPI schemas of custom resources.

kubectl validates with v2 and rejects many constructs. So v2 omits defaults, alternatives, types of nullable values, and
the content of objects that preserve unknown fields.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pilothouse.apiserver.openapi.definitions import META, V2_REFERENCE, V3_REFERENCE
from pilothouse.extensions.schema.structural import EMBEDDED, INT_OR_STRING, PRESERVE
from pilothouse.machinery.objects import Json
from pilothouse.machinery.schema import documentation

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
    out = _mapped(schema, _unfold)
    _add_embedded(out, _v3_metadata())
    out["properties"] = (out.get("properties") or {}) | _type_meta() | {"metadata": _v3_metadata()}
    return out


def v2_schema(schema: Json, *, preserve_unknown_fields: bool) -> Json:
    if preserve_unknown_fields or schema.get(PRESERVE):
        # With any property, kubectl would reject all other fields.
        return {"type": "object"}
    out = _mapped(schema, _as_v2)
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
    kept = [name for name in required if not (properties.get(name) or {}).get("nullable")]
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict) and additional.get("nullable"):
        kept = []
    if kept:
        schema["required"] = kept
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
