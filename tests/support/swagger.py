"""Small OpenAPI v2 documents."""

from __future__ import annotations

from typing import Any

import orjson

from pilothouse.aggregator.openapi.spec import Spec
from pilothouse.client import Json


def swagger(group_version: str = "a.io/v1", **definitions: Json) -> Json:
    """A document with one path for each definition, which answers with it."""
    paths = {f"/apis/{group_version}/{name.lower()}s": _path(name) for name in definitions}
    return {
        "swagger": "2.0",
        "info": {"title": "Remote", "version": "v0"},
        "paths": paths,
        "definitions": {f"io.a.{name}": schema for name, schema in definitions.items()},
    }


def _path(name: str) -> Json:
    response = {"description": "OK", "schema": {"$ref": f"#/definitions/io.a.{name}"}}
    return {"get": {"operationId": f"list{name}", "produces": ["application/json"], "responses": {"200": response}}}


def spec(group_version: str = "a.io/v1", **definitions: Any) -> Spec:
    return Spec.parse(orjson.dumps(swagger(group_version, **definitions)))
