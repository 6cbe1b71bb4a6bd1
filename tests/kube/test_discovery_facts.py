"""Discovery of the built-in groups equals what kube-apiserver v1.36 shows, resource by resource."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from recorded import recorded
from whole_server import whole_server

from pilothouse.machinery.objects import Json
from pilothouse.testing import API

FACTS = recorded("facts") / "discovery.json"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[API]:
    async with whole_server(tmp_path) as server:
        yield server


def _resources(documents: Json) -> Iterator[tuple[str, Json]]:
    """Every resource and subresource under its full name, such as apps/v1/deployments/scale."""
    for document in documents.values():
        for group in document["items"]:
            for version in group["versions"]:
                name = group["metadata"].get("name", "")
                for resource in version["resources"]:
                    full = f"{name}/{version['version']}/{resource['resource']}"
                    yield full, _comparable(resource)
                    for each in resource.get("subresources") or ():
                        yield f"{full}/{each['subresource']}", _comparable(each)


def _comparable(resource: Json) -> Json:
    lists: dict[str, Any] = {name: sorted(resource.get(name) or ()) for name in ("verbs", "shortNames", "categories")}
    return {key: value for key, value in resource.items() if key not in ("subresources", *lists)} | lists


async def _found(api: API) -> dict[str, Json]:
    documents = {path: (await api.request("GET", path, accept=AGGREGATED)).json for path in ("/api", "/apis")}
    return dict(_resources(documents))


def _wanted() -> dict[str, Json]:
    return dict(_resources(json.loads(FACTS.read_text())))


async def test_every_resource_is_there_and_no_other(api: API) -> None:
    assert (await _found(api)).keys() == _wanted().keys()


async def test_every_resource_is_described_as_kube_apiserver_does(api: API) -> None:
    found, wanted = await _found(api), _wanted()
    differing = {name: (found[name], wanted[name]) for name in found.keys() & wanted.keys()}
    assert {name: pair for name, pair in differing.items() if pair[0] != pair[1]} == {}


async def test_versions_are_listed_in_the_order_in_which_they_are_preferred(api: API) -> None:
    groups = (await api.request("GET", "/apis", accept=AGGREGATED)).json["items"]
    found = {group["metadata"]["name"]: [each["version"] for each in group["versions"]] for group in groups}
    recorded = json.loads(FACTS.read_text())["/apis"]["items"]
    wanted = {group["metadata"]["name"]: [each["version"] for each in group["versions"]] for group in recorded}
    assert {name: wanted[name] for name in found} == found
