"""An object that is too large with its managedFields is stored without them, but for an apply, which needs them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from whole_server import CONFIG_MAPS, whole_server

from pilothouse.client import Json
from pilothouse.testing import API

MANY = {f"this-key-is-very-long-so-as-to-create-a-very-large-serialized-fieldset-{i}": "A" for i in range(9999)}


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[API]:
    async with whole_server(tmp_path) as running:
        yield running


def config_map(name: str, **fields: Any) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **fields}


async def test_only_an_apply_insists_on_managed_fields_that_make_an_object_too_large(api: API) -> None:
    created = await api.request("POST", CONFIG_MAPS, config_map("large", data=MANY))
    assert (created.status, len(created.json["data"])) == (201, len(MANY))
    assert "managedFields" not in created.json["metadata"]
    apply = f"{CONFIG_MAPS}/large?fieldManager=test"
    applied = await api.request("PATCH", apply, config_map("large"), media="application/apply-patch+yaml")
    assert (applied.status, applied.json["message"]) == (500, "etcdserver: request is too large")
    for method, media in (("PUT", "application/json"), ("PATCH", "application/merge-patch+json")):
        name = f"grows-by-{method.lower()}"
        small = await api.request("POST", CONFIG_MAPS, config_map(name, data={"a": "b"}))
        assert small.json["metadata"]["managedFields"]
        grown = await api.request(method, f"{CONFIG_MAPS}/{name}", config_map(name, data=MANY), media=media)
        assert (grown.status, "managedFields" in grown.json["metadata"]) == (200, False)


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (1_600_000, "etcdserver: request is too large"),
        (2_200_000, "rpc error: code = ResourceExhausted desc = trying to send message larger than max (2200"),
    ],
)
async def test_what_is_too_large_on_its_own_is_refused_in_upstreams_words(api: API, size: int, words: str) -> None:
    path = "/apis/apps/v1/namespaces/default/controllerrevisions"
    revision = {"metadata": {"name": "r"}, "revision": 1, "data": {"text": "x" * size}}
    refused = await api.request("POST", path, revision)
    assert refused.status == 500
    assert refused.json["message"].startswith(words)
