"""The document of all groups while the servers behind APIServices answer, change, fail and hang."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
from api_services import AGGREGATED, RemoteServer, api_service, group
from patience import PATIENCE

from pilothouse.aggregator.discovery.manager import REFRESH_INTERVAL, DiscoveryManager
from pilothouse.apiserver.discovery.handlers import aggregated_form
from pilothouse.apiserver.discovery.manager import GroupDocuments, GroupManager
from pilothouse.apiserver.endpoints.serializers.registry import JSON
from pilothouse.apiserver.http import Request, Response
from pilothouse.client.fake_clock import FakeClock
from pilothouse.machinery.objects import Json
from pilothouse.machinery.server_errors import ServiceUnavailable

CONFIG = GroupDocuments("apps", {}, {"metadata": {"name": "apps"}, "versions": [{"version": "v1"}]})


class Aggregation:
    def __init__(self, manager: DiscoveryManager, clock: FakeClock) -> None:
        self.manager = manager
        self.clock = clock

    def items(self) -> dict[str, list[Json]]:
        found = orjson.loads(self.manager.document().body(JSON))["items"]
        return {each["metadata"]["name"]: each["versions"] for each in found}

    async def settled(self) -> None:
        """Until every server has been asked."""
        await asyncio.wait_for(self.manager.wait_tried(), PATIENCE)

    async def asked_again(self, seconds: float) -> None:
        """Lets time pass, and waits until the only server has been asked and will be asked again."""
        await self.clock.wait_for_timer(seconds)
        self.clock.advance(seconds)
        await self.clock.wait_for_timers()


@pytest.fixture
async def aggregation() -> AsyncIterator[Aggregation]:
    local, clock = GroupManager(), FakeClock()
    local.put(CONFIG)
    manager = DiscoveryManager(local, {}, timeout=0.2, clock=clock)
    running = asyncio.create_task(manager.run())
    yield Aggregation(manager, clock)
    running.cancel()
    await asyncio.wait({running})


async def test_what_a_server_says_is_shown_as_current(aggregation: Aggregation) -> None:
    server = RemoteServer()
    server.serve_groups(group("a.io", v1=["things"], v2=["others"]))
    aggregation.manager.add_api_service(server, api_service("a.io"))
    await aggregation.settled()
    (version,) = aggregation.items()["a.io"]
    assert (version["version"], version["freshness"]) == ("v1", "Current")
    assert [each["resource"] for each in version["resources"]] == ["things"]


async def test_it_is_asked_as_the_aggregator_for_both_versions_of_the_document(aggregation: Aggregation) -> None:
    server = RemoteServer()
    server.serve_groups()
    aggregation.manager.add_api_service(server, api_service("a.io"))
    await aggregation.settled()
    (request,) = server.requests
    assert (request.user.name, request.user.groups) == ("system:kube-aggregator", ("system:masters",))
    assert request.header(b"accept") == f"{AGGREGATED},{AGGREGATED.replace('v=v2', 'v=v2beta1')}"
    assert not request.info.is_resource


async def test_a_version_that_its_server_does_not_name_is_shown_without_resources(aggregation: Aggregation) -> None:
    server = RemoteServer()
    server.serve_groups(group("b.io", v1=["things"]))
    aggregation.manager.add_api_service(server, api_service("a.io"))
    await aggregation.settled()
    assert aggregation.items()["a.io"] == [{"version": "v1", "freshness": "Current"}]
    assert "b.io" not in aggregation.items()


async def test_before_a_server_has_answered_its_version_is_there_and_stale(aggregation: Aggregation) -> None:
    aggregation.manager.add_api_service(RemoteServer(), api_service("a.io"))
    assert aggregation.items()["a.io"] == [{"version": "v1", "freshness": "Stale"}]


async def test_a_server_without_aggregated_discovery_is_asked_for_the_version_itself(aggregation: Aggregation) -> None:
    server = RemoteServer()
    server.serve("/apis", {"kind": "APIGroupList", "groups": []})
    server.serve("/apis/a.io/v1", {"resources": [{"name": "things", "namespaced": True, "kind": "Thing"}]})
    aggregation.manager.add_api_service(server, api_service("a.io"))
    await aggregation.settled()
    (version,) = aggregation.items()["a.io"]
    assert (version["freshness"], version["resources"][0]["resource"]) == ("Current", "things")
    assert server.asked == ["/apis", "/apis/a.io/v1"]


async def test_the_services_of_one_server_ask_it_once(aggregation: Aggregation) -> None:
    server = RemoteServer()
    server.serve_groups(group("a.io", v1=["things"], v2=["others"]))
    for version in ("v1", "v2"):
        aggregation.manager.add_api_service(server, api_service("a.io", version))
    await aggregation.settled()
    assert [each["version"] for each in aggregation.items()["a.io"]] == ["v2", "v1"]
    assert server.asked == ["/apis"]


async def test_a_server_is_asked_again_every_minute_with_the_etag_it_gave(aggregation: Aggregation) -> None:
    server = RemoteServer()
    server.serve_groups(group("a.io", v1=["things"]), etag='"1"')
    aggregation.manager.add_api_service(server, api_service("a.io"))
    await aggregation.settled()
    document = aggregation.manager.document()
    await aggregation.asked_again(REFRESH_INTERVAL)
    assert server.requests[-1].header(b"if-none-match") == '"1"'
    assert aggregation.manager.document() is document
    server.serve_groups(group("a.io", v1=["others"]), etag='"2"')
    await aggregation.asked_again(REFRESH_INTERVAL)
    assert aggregation.items()["a.io"][0]["resources"][0]["resource"] == "others"
    assert aggregation.manager.document().etag != document.etag


async def test_a_server_that_fails_keeps_its_last_answer_as_stale_until_it_answers_again(
    aggregation: Aggregation,
) -> None:
    server = RemoteServer()
    server.serve_groups(group("a.io", v1=["things"]))
    aggregation.manager.add_api_service(server, api_service("a.io"))
    await aggregation.settled()
    server.fail("/apis")
    await aggregation.asked_again(REFRESH_INTERVAL)
    (version,) = aggregation.items()["a.io"]
    assert (version["freshness"], version["resources"][0]["resource"]) == ("Stale", "things")
    for delay in (0.5, 1.0, 2.0):
        await aggregation.asked_again(delay)
    server.serve_groups(group("a.io", v1=["things"]))
    await aggregation.asked_again(4.0)
    assert aggregation.items()["a.io"][0]["freshness"] == "Current"


async def _hangs(request: Request) -> Response:
    await asyncio.Event().wait()
    raise AssertionError


async def _breaks(request: Request) -> Response:
    raise ConnectionResetError("the peer has gone")


async def _refuses(request: Request) -> Response:
    raise ServiceUnavailable("service unavailable")


async def _lies(request: Request) -> Response:
    return Response(200, b'{"items": 7}', [(b"content-type", AGGREGATED.encode())])


@pytest.mark.parametrize("dead", [_hangs, _breaks, _refuses, _lies])
async def test_a_server_that_does_not_answer_takes_nothing_from_the_others(aggregation: Aggregation, dead: Any) -> None:
    for number in range(60):
        aggregation.manager.add_api_service(dead, api_service(f"dead{number}.io"))
    server = RemoteServer()
    server.serve_groups(group("a.io", v1=["things"]))
    aggregation.manager.add_api_service(server, api_service("a.io"))
    assert aggregation.items()["apps"] == [{"version": "v1"}]
    await aggregation.settled()
    items = aggregation.items()
    assert (items["a.io"][0]["freshness"], items["dead0.io"]) == ("Current", [{"version": "v1", "freshness": "Stale"}])
    assert len(items) == 62


async def test_an_apiservice_that_is_removed_leaves_the_document_as_it_was(aggregation: Aggregation) -> None:
    before = aggregation.manager.document().etag
    server = RemoteServer()
    server.serve_groups(group("a.io", v1=["things"]))
    aggregation.manager.add_api_service(server, api_service("a.io"))
    await aggregation.settled()
    aggregation.manager.remove_api_service("v1.a.io")
    assert aggregation.manager.document().etag == before


async def test_an_apiservice_that_becomes_local_is_known_without_asking(aggregation: Aggregation) -> None:
    aggregation.manager.add_api_service(RemoteServer(), api_service("a.io"))
    aggregation.manager.add_api_service(RemoteServer(), api_service("a.io", service=None))
    assert list(aggregation.items()) == ["apps"]


async def test_a_change_of_priority_counts_at_once_and_other_changes_leave_the_document_alone(
    aggregation: Aggregation,
) -> None:
    server = RemoteServer()
    aggregation.manager.add_api_service(server, api_service("a.io"))
    aggregation.manager.add_api_service(server, api_service("b.io"))
    document = aggregation.manager.document()
    aggregation.manager.add_api_service(server, api_service("b.io"))
    assert aggregation.manager.document() is document
    aggregation.manager.add_api_service(server, api_service("b.io", groupPriorityMinimum=2000))
    assert list(aggregation.items()) == ["b.io", "a.io", "apps"]


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        (AGGREGATED, "application/json"),
        (f"application/json,{AGGREGATED}", "application/json"),
        (AGGREGATED.replace("json", "vnd.kubernetes.protobuf"), "application/vnd.kubernetes.protobuf"),
        (AGGREGATED.replace("json", "yaml"), "application/yaml"),
        (f"{AGGREGATED.replace('json', 'cbor')},{AGGREGATED}", "application/json"),
        (AGGREGATED.replace("v2", "v2beta1"), None),
        ("application/json", None),
        ("", None),
    ],
)
def test_the_aggregated_form_is_for_those_who_ask_for_it(accept: str, media_type: str | None) -> None:
    form = aggregated_form(accept)
    assert (form.media_type if form else None) == media_type
