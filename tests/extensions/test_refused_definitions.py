"""Refusals of CustomResourceDefinitions on a running server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
import pytest_asyncio
from custom_resources import DEFINITIONS, definition, version
from whole_server import whole_server

from pilothouse.testing import API

pytestmark = pytest.mark.asyncio(loop_scope="module")
DRY_RUN = f"{DEFINITIONS}?dryRun=All"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[API]:
    async with whole_server() as running:
        yield running


async def test_versions_are_printed_with_the_names_of_go_at_every_depth(server: API) -> None:
    schema = {"type": "object", "externalDocs": {"url": "u"}, "x-kubernetes-validations": []}
    versions = [version(schema=schema), version("v2", schema={"type": "object"}, additionalPrinterColumns=[])]
    refused = await server.request("POST", DRY_RUN, definition(*versions))
    [message] = [cause["message"] for cause in refused.json["details"]["causes"] if cause["field"] == "spec.versions"]
    printed = orjson.loads(message.removeprefix("Invalid value: ").rpartition(": ")[0])
    inner = printed[0]["Schema"]["OpenAPIV3Schema"]
    assert (inner["Type"], inner["ExternalDocs"], inner["XValidations"], inner["Required"]) == (
        "object",
        {"Description": "", "URL": "u"},
        [],
        None,
    )


@pytest.mark.parametrize(
    ("items", "reason"),
    [
        ([], 'Invalid value: {"Schema":null,"JSONSchemas":[]}: must only have a single schema if'),
        (None, "Required value: must have a schema if"),
    ],
)
async def test_an_empty_list_of_schemas_is_not_a_missing_schema(server: API, items: Any, reason: str) -> None:
    keyed = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"], "items": items}
    schema = {"type": "object", "properties": {"l": keyed}}
    refused = await server.request("POST", DRY_RUN, definition(version(schema=schema)))
    path = "spec.validation.openAPIV3Schema.properties[l].items"
    assert f"{path}: Required value: must be specified" in refused.json["message"]
    assert f"{path}: {reason} x-kubernetes-list-type is map" in refused.json["message"]


async def test_an_empty_list_of_schemas_is_not_stored(server: API) -> None:
    field = {"type": "string", "items": []}
    schema = {"type": "object", "properties": {"s": field}}
    made = await server.request("POST", DRY_RUN, definition(version(schema=schema)))
    assert made.status == 201
    [written] = made.json["spec"]["versions"]
    assert written["schema"]["openAPIV3Schema"]["properties"]["s"] == {"type": "string"}


@pytest.mark.parametrize(("versions", "printed"), [([], "[]"), (None, "null")])
async def test_no_versions_are_printed_as_they_were_sent(server: API, versions: Any, printed: str) -> None:
    sent = definition()
    sent["spec"]["versions"] = versions
    refused = await server.request("POST", DRY_RUN, sent)
    assert f"spec.versions: Invalid value: {printed}: must have exactly one version" in refused.json["message"]


@pytest.mark.parametrize(
    ("field", "value", "status"),
    [
        ("oneOf", [], 422),
        ("x-kubernetes-list-map-keys", [], 422),
        ("additionalProperties", False, 422),
        ("maxProperties", 0, 422),
        ("oneOf", None, 201),
        ("id", "", 201),
        ("x-kubernetes-int-or-string", False, 201),
    ],
)
async def test_empty_values_count_as_fields_at_the_root_of_a_schema_with_status(
    server: API, field: str, value: Any, status: int
) -> None:
    schema = {"type": "object", field: value}
    made = await server.request("POST", DRY_RUN, definition(version(schema=schema, subresources={"status": {}})))
    assert made.status == status, made.json
    if status == 422:
        assert (
            "fields are allowed at the root of the schema if the status subresource is enabled" in made.json["message"]
        )
