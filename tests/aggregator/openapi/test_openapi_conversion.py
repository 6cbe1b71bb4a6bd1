"""A server's OpenAPI v2 as version 3."""

from __future__ import annotations

from typing import Any

import orjson

from pilothouse.aggregator.openapi.conversion import as_v3
from pilothouse.aggregator.openapi.spec import Spec

JSON = ["application/json"]


def converted(**parts: Any) -> Any:
    return orjson.loads(as_v3(Spec.parse(orjson.dumps({"info": {"title": "t", "version": "1"}, **parts}))))


def test_definitions_become_schemas_and_references_stand_alone() -> None:
    schema = {
        "type": "object",
        "properties": {
            "plain": {"$ref": "#/definitions/A"},
            "said": {"description": "d", "$ref": "#/definitions/A"},
            "many": {"type": "array", "items": {"$ref": "#/definitions/A"}},
            "named": {"type": "object", "additionalProperties": {"$ref": "#/definitions/A"}},
        },
    }
    properties = converted(paths={}, definitions={"B": schema})["components"]["schemas"]["B"]["properties"]
    reference = {"$ref": "#/components/schemas/A"}
    assert properties["plain"] == reference
    assert properties["said"] == {"description": "d", "allOf": [reference]}
    assert (properties["many"]["items"], properties["named"]["additionalProperties"]) == (reference, reference)


def test_a_body_becomes_a_request_body_and_answers_have_content_by_media_type() -> None:
    body = {"name": "body", "in": "body", "schema": {"$ref": "#/definitions/A"}}
    query = {"name": "limit", "in": "query", "type": "integer", "uniqueItems": True}
    operation = {
        "operationId": "createA",
        "consumes": ["application/yaml"],
        "produces": JSON,
        "parameters": [body, query],
        "responses": {"200": {"description": "OK", "schema": {"type": "string"}}, "401": {"description": "no"}},
        "x-kubernetes-action": "post",
    }
    post = converted(paths={"/a": {"post": operation}})["paths"]["/a"]["post"]
    schema = {"schema": {"$ref": "#/components/schemas/A"}}
    assert post["requestBody"] == {"content": {"application/yaml": schema}}
    assert post["parameters"] == [{"name": "limit", "in": "query", "schema": {"type": "integer", "uniqueItems": True}}]
    assert post["responses"]["200"]["content"] == {"application/json": {"schema": {"type": "string"}}}
    assert post["responses"]["401"] == {"description": "no"}
    assert (post["operationId"], post["x-kubernetes-action"]) == ("createA", "post")


def test_shared_parameters_stay_shared_but_a_shared_body_is_written_out() -> None:
    shared = {
        "pretty": {"name": "pretty", "in": "query", "type": "string"},
        "body": {"name": "body", "in": "body", "schema": {"$ref": "#/definitions/A"}},
    }
    parameters = [{"$ref": "#/parameters/pretty"}, {"$ref": "#/parameters/body"}]
    document = converted(
        paths={"/a": {"delete": {"consumes": JSON, "parameters": parameters, "responses": {}}}}, parameters=shared
    )
    delete = document["paths"]["/a"]["delete"]
    assert delete["parameters"] == [{"$ref": "#/components/parameters/pretty"}]
    assert delete["requestBody"]["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/A"}
    assert document["components"]["parameters"].keys() == {"pretty"}
