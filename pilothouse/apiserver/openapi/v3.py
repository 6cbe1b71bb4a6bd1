"""The OpenAPI v3 document of one group version or of another path with routes."""

from __future__ import annotations

from collections.abc import Iterable

import orjson

from pilothouse.apiserver.openapi.definitions import META, PACKAGED, V3_REFERENCE, Definition, html_safe, reachable
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
from pilothouse.apiserver.openapi.route import STRING, Body, Parameter, Route, RouteContainer
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json
from pilothouse.machinery.version_rules import holds

_KINDS = "x-kubernetes-group-version-kind"
_IN_EVERY_GROUP = (f"{META}.DeleteOptions", f"{META}.WatchEvent")


def document(container: RouteContainer) -> bytes:
    """Return the document as JSON. Missing definitions are replaced by the schema of an arbitrary object."""
    routes = tuple(container.routes())
    schemas = reachable(definitions_named(routes), (container.definitions or PACKAGED).v3)
    components: Json = {"schemas": _schemas(schemas, container.group_version)} if schemas else {}
    return html_safe(
        orjson.dumps(
            {
                "openapi": "3.0.0",
                "info": {"title": container.info.title, "version": container.info.version},
                "paths": {there.path: _path_item(there) for there in by_path(routes)},
                "components": components | ({"securitySchemes": SECURITY} if container.secured else {}),
            }
        )
    )


def _path_item(there: PathRoutes) -> Json:
    item: Json = {route.method: _operation(route, there.own(route)) for route in there.routes}
    return item | {"parameters": _parameters(there.common)} if there.common else item


def _operation(route: Route, parameters: Iterable[Parameter]) -> Json:
    out: Json = {
        "tags": tags(route.path),
        "description": route.description,
        "operationId": operation_id(route.path, route.operation),
        "parameters": _parameters(parameters),
        "requestBody": _request_body(route.body, route.consumes) if route.body else None,
        "responses": {answer.code: _response(answer, route.produces) for answer in answers(route)},
    }
    return {key: value for key, value in out.items() if value} | extensions(route)


def _parameters(parameters: Iterable[Parameter]) -> list[Json]:
    return [_parameter(parameter) for parameter in parameters]


def _parameter(parameter: Parameter) -> Json:
    out: Json = {"name": parameter.name, "in": parameter.location, "description": parameter.description}
    if parameter.required:
        out["required"] = True
    return out | {"schema": {"type": parameter.type, "uniqueItems": True}}


def _request_body(body: Body, consumes: Iterable[str]) -> Json:
    out: Json = {"content": _content(body.definition, consumes)}
    return out | {"required": True} if body.required else out


def _response(answer: DescribedResponse, produces: Iterable[str]) -> Json:
    out: Json = {"description": answer.description}
    return out | {"content": _content(answer.definition, produces)} if answer.definition else out


def _content(definition: str, media_types: Iterable[str]) -> Json:
    schema = {"type": "string"} if definition == STRING else {"$ref": V3_REFERENCE + definition}
    return {media_type: {"schema": schema} for media_type in sorted(media_types)}


def _schemas(schemas: dict[str, Definition], group_version: GroupVersion | None) -> Json:
    encoded = {name: schemas[name].json for name in sorted(schemas)}
    for name in _IN_EVERY_GROUP:
        if name in encoded and group_version is not None and holds("OwnKindsInOpenAPI"):
            # Restrict the kinds of a shared definition to the group version and the legacy group.
            out: Json = orjson.loads(encoded[name])
            wanted = (("", "v1"), (group_version.group, group_version.version))
            out[_KINDS] = [kind for kind in out[_KINDS] if (kind["group"], kind["version"]) in wanted]
            encoded[name] = orjson.dumps(out)
    return {name: orjson.Fragment(json) for name, json in encoded.items()}
