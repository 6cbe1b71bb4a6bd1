"""The OpenAPI v2 document: all routes of a server, with shared parameters."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any

import orjson

from pilothouse.apiserver.openapi.definitions import PACKAGED, V2_REFERENCE, Definition, by_name, reachable
from pilothouse.apiserver.openapi.operation import (
    SECURITY,
    DescribedResponse,
    PathRoutes,
    answers,
    by_path,
    definitions_named,
    extensions,
    operation_id,
    tags,
)
from pilothouse.apiserver.openapi.route import STRING, Body, Info, Parameter, Route, RouteContainer
from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

# Older versions of kubectl search each operation for the last two to detect features, by kind.
_NEVER_SHARED = frozenset({"name", "fieldValidation", "dryRun"})
_FNV_OFFSET, _FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3


@dataclass(frozen=True, slots=True)
class DocumentPart:
    """The part of one container in the document, with encoded path items. Depends on no other container."""

    paths: dict[str, orjson.Fragment]
    schemas: dict[str, Definition]
    parameters: dict[str, Json]
    """The shared parameters that the path items reference."""

    @classmethod
    def of(cls, container: RouteContainer) -> DocumentPart:
        """Raises KeyError as v3 does."""
        routes, shared = tuple(container.routes()), SharedParameters()
        schemas = reachable(definitions_named(routes), (container.definitions or PACKAGED).v2)
        items = {there.path: _path_item(there, shared) for there in by_path(routes)}
        paths = {path: orjson.Fragment(orjson.dumps(item)) for path, item in items.items()}
        return cls(paths, schemas, shared.by_name)


def document(containers: Iterable[RouteContainer]) -> bytes:
    """Return the v2 document. Raises KeyError as v3 does."""
    return joined(map(DocumentPart.of, containers))


def joined(parts: Iterable[DocumentPart]) -> bytes:
    """Return the v2 document. For equal paths or definitions the first one is used."""
    paths: dict[str, orjson.Fragment] = {}
    schemas: dict[str, Definition] = {}
    parameters: dict[str, Json] = {}
    for part in parts:
        for found, own in ((paths, part.paths), (schemas, part.schemas), (parameters, part.parameters)):
            _add_missing(found, own)
    info = Info()
    return orjson.dumps(
        {
            "swagger": "2.0",
            "info": {"title": info.title, "version": info.version},
            "paths": {path: paths[path] for path in sorted(paths)},
            "definitions": {name: orjson.Fragment(schemas[name].json) for name in sorted(schemas)},
            "parameters": dict(sorted(parameters.items())),
            "securityDefinitions": SECURITY,
            "security": [{"BearerToken": []}],
        }
    )


def _add_missing(found: dict[str, Any], own: dict[str, Any]) -> None:
    for name, value in own.items():
        found.setdefault(name, value)


class SharedParameters:
    """Parameters that are written once and referenced by a name that ends with a hash."""

    def __init__(self) -> None:
        self.by_name: dict[str, Json] = {}

    def all(self, parameters: Iterable[Parameter], body: Body | None = None) -> list[Json]:
        written = [self._written(parameter) for parameter in parameters]
        return [self._body(body), *written] if body else written

    def _written(self, parameter: Parameter) -> Json:
        if parameter.name in _NEVER_SHARED:
            return _parameter(parameter)
        return self._reference(_parameter(parameter))

    def _body(self, body: Body) -> Json:
        """Share only bodies that are equal for all kinds: delete options and patches."""
        written: Json = {"name": "body", "in": "body"}
        if body.required:
            written["required"] = True
        written["schema"] = _schema(body.definition)
        if not body.definition.startswith("io.k8s.apimachinery"):
            return written
        return self._reference(written)

    def _reference(self, written: Json) -> Json:
        name = f"{written['name']}-{_hash(orjson.dumps(written))}"
        self.by_name[name] = written
        return {"$ref": f"#/parameters/{name}"}


def _path_item(there: PathRoutes, shared: SharedParameters) -> Json:
    item: Json = {route.method: _operation(route, there.own(route), shared) for route in there.routes}
    return item | {"parameters": shared.all(there.common)} if there.common else item


def _operation(route: Route, parameters: Iterable[Parameter], shared: SharedParameters) -> Json:
    out: Json = {
        "description": route.description,
        "consumes": route.consumes,
        "produces": route.produces,
        "schemes": ["https"],
        "tags": tags(route.path),
        "operationId": operation_id(route.path, route.operation),
        "parameters": shared.all(parameters, route.body),
        "responses": {answer.code: _response(answer) for answer in answers(route)},
    }
    told: Json = by_name(extensions(route))
    return {key: value for key, value in out.items() if value} | told


def _parameter(parameter: Parameter) -> Json:
    out: Json = {
        "uniqueItems": True,
        "type": parameter.type,
        "description": parameter.description,
        "name": parameter.name,
        "in": parameter.location,
    }
    return out | {"required": True} if parameter.required else out


def _response(answer: DescribedResponse) -> Json:
    out: Json = {"description": answer.description}
    return out | {"schema": _schema(answer.definition)} if answer.definition else out


def _schema(definition: str) -> Json:
    return {"type": "string"} if definition == STRING else {"$ref": V2_REFERENCE + definition}


@bounded_cache(entries=256, key_bytes=16 * 1024)
def _hash(parameter: bytes) -> str:
    """Return the prefix of the FNV-1 hash of the encoded parameter: clients know these names."""
    value = _FNV_OFFSET
    for byte in parameter:
        value = value * _FNV_PRIME % 2**64 ^ byte
    return base64.urlsafe_b64encode(value.to_bytes(8, "big")[:6]).decode()
