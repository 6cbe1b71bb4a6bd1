"""What clients learn about the API before they use it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from whole_server import whole_server

from pilothouse.apiserver.tallies import REGISTRY
from pilothouse.testing import API

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[API]:
    async with whole_server(tmp_path) as server:
        yield server


async def test_the_legacy_group_names_its_versions_and_the_servers_address(api: API) -> None:
    found = (await api.request("GET", "/api")).json
    assert (found["kind"], found["versions"]) == ("APIVersions", ["v1"])
    assert found["serverAddressByClientCIDRs"][0]["clientCIDR"] == "0.0.0.0/0"


@pytest.mark.parametrize("client", ["10.0.0.5", "::ffff:10.0.0.5"])
async def test_clients_among_the_services_are_told_the_address_of_the_kubernetes_service(api: API, client: str) -> None:
    found = (await api.request("GET", "/api", x_forwarded_for=client)).json["serverAddressByClientCIDRs"]
    assert found[1:] == [{"clientCIDR": "10.0.0.0/24", "serverAddress": "10.0.0.1:443"}]
    outside = (await api.request("GET", "/api", x_forwarded_for="192.168.1.1")).json["serverAddressByClientCIDRs"]
    assert outside == found[:1]


async def test_a_version_lists_its_resources_with_their_verbs(api: API) -> None:
    resources = {r["name"]: r for r in (await api.request("GET", "/api/v1")).json["resources"]}
    assert resources["configmaps"]["verbs"] == [
        "create",
        "delete",
        "deletecollection",
        "get",
        "list",
        "patch",
        "update",
        "watch",
    ]
    assert resources["configmaps"]["storageVersionHash"] == "qFsyl6wFWjQ="
    (events,) = (await api.request("GET", "/apis/events.k8s.io/v1")).json["resources"]
    assert events["storageVersionHash"] == resources["events"]["storageVersionHash"] == "r2yiGXH7wu8="
    assert "deletecollection" not in resources["namespaces"]["verbs"]
    assert resources["namespaces/finalize"]["verbs"] == ["update"]
    assert resources["namespaces/status"]["verbs"] == ["get", "patch", "update"]


async def test_aggregated_discovery_is_one_document_with_an_etag(api: API) -> None:
    answer = await api.request("GET", "/api", accept=AGGREGATED)
    assert answer.json["kind"] == "APIGroupDiscoveryList"
    version = answer.json["items"][0]["versions"][0]
    namespaces = next(r for r in version["resources"] if r["resource"] == "namespaces")
    assert [s["subresource"] for s in namespaces["subresources"]] == ["finalize", "status"]
    again = await api.request("GET", "/api", accept=AGGREGATED, if_none_match=answer.headers["etag"])
    assert (again.status, again.body) == (304, b"")


@pytest.mark.parametrize("path", ["/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1"])
async def test_a_slash_behind_the_path_changes_nothing(api: API, path: str) -> None:
    answer = await api.request("GET", f"{path}/")
    assert (answer.status, answer.json) == (200, (await api.request("GET", path)).json)


async def test_an_unknown_version_of_a_known_group_is_a_status_and_an_unknown_group_is_not(
    api: API,
) -> None:
    assert (await api.request("GET", "/api/v9")).json["message"] == "the server could not find the requested resource"
    assert (await api.request("GET", "/apis/nosuch.example.com")).body == b"404 page not found\n"


async def test_all_forms_of_the_aggregated_document_have_the_same_etag(api: API) -> None:
    forms = [AGGREGATED.replace("json", form) for form in ("json", "yaml", "vnd.kubernetes.protobuf")]
    answers = [await api.request("GET", "/apis", accept=form) for form in forms]
    assert len({answer.headers["etag"] for answer in answers}) == 1
    assert [answer.headers["content-type"].partition(";")[0] for answer in answers] == [
        "application/json",
        "application/yaml",
        "application/vnd.kubernetes.protobuf",
    ]
    assert answers[2].body.startswith(b"k8s\x00")


async def test_requests_for_what_this_server_alone_knows_are_counted(api: API) -> None:
    before = _no_peer_requests()
    await api.request("GET", "/apis", accept=AGGREGATED)
    await api.request("GET", "/apis", accept=AGGREGATED.replace("List,", "List;profile=nopeer,"))
    assert _no_peer_requests() == before + 1


def _no_peer_requests() -> float:
    return REGISTRY.get_sample_value("aggregator_discovery_nopeer_requests_total") or 0.0
