"""Refusals of CustomResourceDefinitions on a running server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

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
