"""Discovery in both of its forms, and the REST mapper on top."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from pilothouse.client.blocking import BlockingClient
from pilothouse.client.config.model import ClientConfig
from pilothouse.client.discovery import DiscoveryClient
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.connect import loopback
from pilothouse.client.rest.options import ListOptions
from pilothouse.client.rest_mapper import NoMatch, RESTMapper
from pilothouse.machinery.names import GroupKind, GroupVersion, GroupVersionResource
from pilothouse.machinery.objects import Json


def resource(plural: str, kind: str, **more: Any) -> Json:
    scope = {"scope": "Namespaced", "verbs": ["get", "list"], "singularResource": kind.lower()}
    return {"resource": plural, "responseKind": {"group": "", "version": "", "kind": kind}, **scope, **more}


PODS = resource(
    "pods", "Pod", shortNames=["po"], categories=["all"], subresources=[{"subresource": "log", "verbs": ["get"]}]
)
DEPLOYMENTS = resource("deployments", "Deployment", shortNames=["deploy"], categories=["all"])
AGGREGATED: dict[str, Any] = {
    "/api": [{"metadata": {}, "versions": [{"version": "v1", "resources": [PODS, resource("events", "Event")]}]}],
    "/apis": [
        {
            "metadata": {"name": "apps"},
            "versions": [
                {"version": "v1", "resources": [DEPLOYMENTS]},
                {"version": "v1beta1", "resources": [DEPLOYMENTS, resource("pods", "Pod")]},
            ],
        },
        {
            "metadata": {"name": "events.k8s.io"},
            "versions": [{"version": "v1", "resources": [resource("events", "Event")]}],
        },
        {"metadata": {"name": "down.example.com"}, "versions": [{"version": "v1", "freshness": "Stale"}]},
    ],
}

LEGACY: dict[str, Json] = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {
        "kind": "APIGroupList",
        "groups": [
            {
                "name": "apps",
                "versions": [{"version": "v1beta1"}, {"version": "v1"}],
                "preferredVersion": {"version": "v1"},
            },
            {"name": "down.example.com", "versions": [{"version": "v1"}]},
        ],
    },
    "/api/v1": {
        "resources": [
            {"name": "pods", "kind": "Pod", "namespaced": True, "verbs": ["get"], "shortNames": ["po"]},
            {"name": "pods/eviction", "kind": "Eviction", "group": "policy", "version": "v1", "namespaced": True},
            {"name": "nodes", "kind": "Node", "namespaced": False, "singularName": "node"},
        ]
    },
    "/apis/apps/v1": {"resources": [{"name": "deployments", "kind": "Deployment", "namespaced": True}]},
    "/apis/apps/v1beta1": {"resources": [{"name": "deployments", "kind": "Deployment", "namespaced": True}]},
}


class Server:
    """Answers discovery from a table; what is not in it is not found."""

    def __init__(self, answers: dict[str, Json]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.asked.append(scope["path"])
        found = self.answers.get(scope["path"])
        status = 404 if found is None else 200
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": orjson.dumps(found or {})})


def aggregated() -> Server:
    return Server({path: {"kind": "APIGroupDiscoveryList", "items": items} for path, items in AGGREGATED.items()})


def client(server: Server) -> Client:
    return loopback(server)


async def test_aggregated_discovery_is_read_in_two_requests_and_kept() -> None:
    server = aggregated()
    discovery = DiscoveryClient(client(server))
    found = await discovery.server_resources()
    assert await discovery.server_resources() is found
    assert server.asked == ["/api", "/apis"]
    assert [group.name for group in found.groups] == ["", "apps", "events.k8s.io", "down.example.com"]
    assert list(found.failed) == [GroupVersion("down.example.com", "v1")]
    pods = found.resources[0]
    assert pods.namespaced
    assert pods.short_names == ("po",)
    assert str(pods.kind) == "/v1, Kind=Pod"
    assert found.resources[1].resource.resource == "pods/log"
    assert found.resources[1].is_subresource
    discovery.invalidate()
    await discovery.server_resources()
    assert len(server.asked) == 4


async def test_legacy_discovery_prefers_the_preferred_version_and_survives_a_group_that_is_down() -> None:
    found = await DiscoveryClient(client(Server(LEGACY))).server_resources()
    assert found.groups[1].versions == ("v1", "v1beta1")
    assert list(found.failed) == [GroupVersion("down.example.com", "v1")]
    eviction = next(entry for entry in found.resources if entry.is_subresource)
    assert eviction.kind.group == "policy"
    preferred = [str(entry.resource) for entry in found.preferred() if entry.resource.group == "apps"]
    assert preferred == ["apps/v1, Resource=deployments"]


async def test_a_kind_maps_to_its_resource_in_the_preferred_or_the_given_version() -> None:
    mapper = RESTMapper(DiscoveryClient(client(aggregated())))
    mapping = await mapper.mapping(GroupKind("apps", "Deployment"))
    assert mapping.resource == GroupVersionResource("apps", "v1", "deployments")
    assert mapping.namespaced
    older = await mapper.mapping(GroupKind("apps", "Deployment"), "v1beta1")
    assert older.resource.version == "v1beta1"


@pytest.mark.parametrize("name", ["pods", "pod", "po", "PODS"])
async def test_a_resource_is_found_by_any_of_its_names_and_the_core_group_goes_first(name: str) -> None:
    mapper = RESTMapper(DiscoveryClient(client(aggregated())))
    assert (await mapper.mapping_for(name)).resource == GroupVersionResource("", "v1", "pods")


async def test_a_group_or_version_narrows_a_name_down() -> None:
    mapper = RESTMapper(DiscoveryClient(client(aggregated())))
    assert (await mapper.mapping_for("events")).resource.group == ""
    assert (await mapper.mapping_for("events", group="events.k8s.io")).resource.group == "events.k8s.io"
    assert (await mapper.mapping_for("pods", version="v1beta1")).resource.group == "apps"


async def test_a_category_stands_for_its_resources() -> None:
    mapper = RESTMapper(DiscoveryClient(client(aggregated())))
    assert [found.resource for found in await mapper.category("all")] == ["pods", "deployments"]


async def test_an_unknown_name_is_looked_up_once_more_since_it_may_be_new() -> None:
    server = aggregated()
    mapper = RESTMapper(DiscoveryClient(client(server)))
    await mapper.mapping_for("pods")
    with pytest.raises(NoMatch, match="widgets"):
        await mapper.mapping_for("widgets")
    group = {
        "metadata": {"name": "new.io"},
        "versions": [{"version": "v1", "resources": [resource("widgets", "Widget")]}],
    }
    server.answers["/apis"]["items"].append(group)
    try:
        assert (await mapper.mapping(GroupKind("new.io", "Widget"))).resource.resource == "widgets"
    finally:
        server.answers["/apis"]["items"].remove(group)


async def test_scripts_can_use_everything_without_async(server: Any) -> None:
    """The facade's calls block, so they run in a thread while the test's loop serves them."""

    def script() -> list[Any]:
        done: list[Any] = []
        with BlockingClient(ClientConfig(host=server.url, qps=0)) as blocking:
            maps = blocking.resource("v1", "configmaps", namespace="default")
            created = maps.create({"metadata": {"name": "a"}, "data": {"x": "1"}})
            with maps.watch(ListOptions(resource_version=created["metadata"]["resourceVersion"])) as events:
                maps.update({**created, "data": {"x": "2"}})
                done.append(next(events).object["data"])
            maps.patch("a", {"data": {"x": "3"}})
            done.append(maps.get("a")["data"])
            done.append(maps.apply({"metadata": {"name": "a"}}, field_manager="me")["contentType"])
            done.append([item["metadata"]["name"] for item in maps.items()])
            done.append(len(maps.list()["items"]))
            maps.delete("a")
            maps.delete_collection()
            try:
                blocking.find("configmaps")
            except NoMatch as error:
                done.append(str(error))
        blocking.close()
        return done

    done = await asyncio.to_thread(script)
    assert done == [
        {"x": "2"},
        {"x": "3"},
        "application/apply-patch+yaml",
        ["a"],
        1,
        "the server has no resource 'configmaps'",
    ]
