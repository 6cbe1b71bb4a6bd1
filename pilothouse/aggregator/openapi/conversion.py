"""Conversion from OpenAPI v2 to v3, for servers without v3."""

from __future__ import annotations

from typing import Any

import orjson

from pilothouse.aggregator.openapi.spec import Spec
from pilothouse.machinery.objects import Json

_METHODS = ("get", "put", "post", "delete", "options", "head", "patch")
_MOVED = {
    "#/definitions/": "#/components/schemas/",
    "#/parameters/": "#/components/parameters/",
    "#/responses/": "#/components/responses/",
}
_SCHEMA_IN = ("items", "additionalProperties", "additionalItems", "not")
_SCHEMAS_IN = ("allOf", "anyOf", "oneOf")
_SIMPLE = ("type", "format", "uniqueItems", "items", "enum", "default", "minimum", "maximum", "pattern")
_OPERATION = ("tags", "summary", "description", "externalDocs", "operationId", "deprecated")
_PARAMETER = ("name", "in", "description", "required", "allowEmptyValue")


def as_v3(spec: Spec) -> bytes:
    """Convert a document. Malformed documents raise arbitrary errors such as KeyError or TypeError."""
    components: Json = {"schemas": {name: _schema(schema) for name, schema in spec.definitions.items()}}
    if spec.parameters:
        plain = {name: parameter for name, parameter in spec.parameters.items() if parameter.get("in") != "body"}
        components["parameters"] = {name: _parameter(value) for name, value in plain.items()}
    if security := spec.head.get("securityDefinitions"):
        components["securitySchemes"] = security
    paths = {path: _path_item(item, spec) for path, item in spec.paths.items()}
    head = {"openapi": "3.0.0", "info": spec.head.get("info") or {}}
    return orjson.dumps({**head, "paths": paths, "components": components}, option=orjson.OPT_SORT_KEYS)


def _path_item(item: Json, spec: Spec) -> Json:
    out: Json = {method: _operation(item[method], spec) for method in _METHODS if method in item}
    if parameters := item.get("parameters"):
        out["parameters"] = [_parameter(parameter) for parameter in parameters]
    return out | _extensions(item)


def _operation(operation: Json, spec: Spec) -> Json:
    out: Json = {key: operation[key] for key in _OPERATION if key in operation}
    parameters = []
    for parameter in operation.get("parameters") or []:
        body = _body(parameter, spec)
        if body is None:
            parameters.append(_parameter(parameter))
        else:
            out["requestBody"] = {"content": _content(body["schema"], operation.get("consumes"))}
    if parameters:
        out["parameters"] = parameters
    responses = operation.get("responses") or {}
    out["responses"] = {code: _response(response, operation.get("produces")) for code, response in responses.items()}
    return out | _extensions(operation)


def _body(parameter: Json, spec: Spec) -> Json | None:
    """Return the body parameter, resolving a reference; None for other parameters."""
    name = parameter.get("$ref", "").removeprefix("#/parameters/")
    target = spec.parameters.get(name, parameter) if name else parameter
    return target if target.get("in") == "body" and "schema" in target else None


def _content(schema: Json, media_types: list[str] | None) -> Json:
    return {media_type: {"schema": _schema(schema)} for media_type in media_types or ()}


def _response(response: Json, produces: list[str] | None) -> Json:
    if "$ref" in response:
        return {"$ref": _moved(response["$ref"])}
    out: Json = {"description": response.get("description") or ""}
    if "schema" in response and produces:
        out["content"] = _content(response["schema"], produces)
    return out | _extensions(response)


def _parameter(parameter: Json) -> Json:
    if "$ref" in parameter:
        return {"$ref": _moved(parameter["$ref"])}
    out: Json = {key: parameter[key] for key in _PARAMETER if key in parameter}
    simple = {key: parameter[key] for key in _SIMPLE if key in parameter}
    out["schema"] = _schema(parameter.get("schema", simple))
    return out | _extensions(parameter)


def _schema(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return schema
    out = dict(schema)
    for key in _SCHEMA_IN:
        if key in out:
            out[key] = [_schema(item) for item in out[key]] if isinstance(out[key], list) else _schema(out[key])
    for key in _SCHEMAS_IN:
        if key in out:
            out[key] = [_schema(item) for item in out[key]]
    if "properties" in out:
        out["properties"] = {name: _schema(value) for name, value in out["properties"].items()}
    # Isolate the reference: v3 allows no siblings of $ref, so a $ref with siblings moves into allOf.
    if not isinstance(out.get("$ref"), str):
        return out
    reference = {"$ref": _moved(out.pop("$ref"))}
    return {**out, "allOf": [reference]} if out else reference


def _moved(reference: str) -> str:
    for old, new in _MOVED.items():
        if reference.startswith(old):
            return new + reference.removeprefix(old)
    return reference


def _extensions(value: Json) -> Json:
    return {key: value[key] for key in value if key.startswith("x-")}
