"""Custom resources whose versions a real webhook converts, through a whole server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from admission_webhooks import admission_webhooks, patching
from conversion_webhook import Converter, widgets
from custom_resources import DEFINITIONS, WIDGETS, events, eventually, install, until_gone, widget
from patience import PATIENCE
from tls_backends import external_service
from webhook_server import WebhookServer, webhook_server
from whole_server import whole_server

from pilothouse.testing import API

V2 = WIDGETS.replace("/v1/", "/v2/")
SERVICES = "/api/v1/namespaces/default/services"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
V1_KIND = "example.com/v1, Kind=Widget"
V2_KIND = "example.com/v2, Kind=Widget"
DOWN = 'failed: an error on the server ("down") has prevented the request from succeeding'


@pytest.fixture
def converter() -> Converter:
    return Converter()


@pytest.fixture
async def hook(converter: Converter) -> AsyncIterator[WebhookServer]:
    async with webhook_server(converter, "hook.default.svc") as server:
        yield server


@pytest.fixture
async def server(tmp_path: Path, hook: WebhookServer) -> AsyncIterator[API]:
    async with whole_server(tmp_path) as running:
        assert (await running.request("POST", SERVICES, external_service("hook"))).status == 201
        yield running


def v1(name: str = "a", **spec: Any) -> dict[str, Any]:
    return widget(name, spec=spec)


def v2(name: str = "a", **spec: Any) -> dict[str, Any]:
    return widget(name, api_version="v2", spec=spec)


@pytest.mark.parametrize("reviews", [("v1",), ("v1beta1", "v1"), ("v9", "v1beta1")])
async def test_an_object_is_written_and_read_in_any_version(
    server: API, hook: WebhookServer, converter: Converter, reviews: tuple[str, ...]
) -> None:
    await install(server, widgets(hook.by_service(port=hook.port), reviews=reviews))
    made = await server.request("POST", V2, v2(address="h:81", count=2, note="lost"))
    assert (made.status, made.json["apiVersion"]) == (201, "example.com/v2")
    assert made.json["spec"] == {"address": "h:81", "count": 2}
    assert (await server.request("GET", f"{WIDGETS}/a")).json["spec"] == {"host": "h", "port": 81, "replicas": 2}
    assert (await server.request("GET", f"{V2}/a")).json == made.json
    asked = next(version for version in reviews if version != "v9")
    assert {review["apiVersion"] for review in converter.reviews} == {f"apiextensions.k8s.io/{asked}"}


async def test_objects_are_validated_and_defaulted_in_the_version_of_the_request(
    server: API, hook: WebhookServer
) -> None:
    await install(server, widgets(hook.by_url()))
    refused = await server.request("POST", V2, v2(count=101))
    assert refused.status == 422
    assert (
        "spec.count: Invalid value: 101: spec.count in body should be less than or equal to 100"
        in (refused.json["message"])
    )
    assert (await server.request("POST", WIDGETS, v1(host="h", replicas=500))).status == 201
    assert (await server.request("GET", f"{V2}/a")).json["spec"] == {"address": "h:80", "count": 500}


async def test_every_verb_works_in_the_version_that_is_not_stored(server: API, hook: WebhookServer) -> None:
    await install(server, widgets(hook.by_url()))
    made = (await server.request("POST", V2, v2(address="h:1", count=1))).json
    put = await server.request("PUT", f"{V2}/a", made | {"spec": {"address": "h:2", "count": 2}})
    assert (put.json["spec"], put.json["metadata"]["generation"]) == ({"address": "h:2", "count": 2}, 2)
    patched = await server.request("PATCH", f"{V2}/a", {"spec": {"count": 3}}, media=MERGE)
    assert patched.json["spec"] == {"address": "h:2", "count": 3}
    status = await server.request(
        "PATCH", f"{V2}/a/status", {"status": {"ready": 7}, "spec": {"count": 9}}, media=MERGE
    )
    assert (status.json["status"], status.json["spec"]["count"]) == ({"ready": 7}, 3)
    scale = await server.request("PATCH", f"{V2}/a/scale", {"spec": {"replicas": 5}}, media=MERGE)
    assert (scale.json["spec"], scale.json["status"]) == ({"replicas": 5}, {"replicas": 7})
    assert (await server.request("GET", f"{WIDGETS}/a/scale")).json["spec"] == {"replicas": 5}
    table = (await server.request("GET", V2, accept=TABLE)).json
    assert [row["cells"] for row in table["rows"]] == [["a", "h:2"]]
    assert len((await server.request("GET", f"{V2}?fieldSelector=spec.address%3Dh:2")).json["items"]) == 1
    assert (await server.request("GET", f"{V2}?fieldSelector=spec.address%3Dh:9")).json["items"] == []
    assert (await server.request("GET", f"{V2}?fieldSelector=spec.host%3Dh")).status == 400
    assert (await server.request("DELETE", f"{V2}/a")).status == 200
    assert (await server.request("GET", f"{WIDGETS}/a")).status == 404


async def test_an_update_that_changes_nothing_is_not_written(server: API, hook: WebhookServer) -> None:
    await install(server, widgets(hook.by_url()))
    made = (await server.request("POST", V2, v2(address="h:1"))).json
    same = (await server.request("PUT", f"{V2}/a", made)).json
    assert same["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


async def test_managers_own_fields_in_the_versions_in_which_they_applied_them(server: API, hook: WebhookServer) -> None:
    await install(server, widgets(hook.by_url()))
    first = v1(host="h", port=1)
    assert (await server.request("PATCH", f"{WIDGETS}/a?fieldManager=one", first, media=APPLY)).status == 201
    second = await server.request("PATCH", f"{V2}/a?fieldManager=two", v2(count=4), media=APPLY)
    assert (second.status, second.json["spec"]) == (200, {"address": "h:1", "count": 4})
    clash = await server.request("PATCH", f"{V2}/a?fieldManager=two", v2(address="x:2", count=4), media=APPLY)
    assert (clash.status, clash.json["details"]["causes"][0]["field"]) == (409, ".spec.host")
    left = await server.request("PATCH", f"{V2}/a?fieldManager=two", v2(), media=APPLY)
    assert left.json["spec"] == {"address": "h:1"}


async def test_list_is_converted_in_one_review_and_cached_for_all_readers(
    server: API, hook: WebhookServer, converter: Converter
) -> None:
    await install(server, widgets(hook.by_url()))
    for number in range(5):
        assert (await server.request("POST", WIDGETS, v1(f"w{number}", host="h", port=number))).status == 201
    converter.reviews.clear()
    for _ in range(3):
        listed = (await server.request("GET", V2)).json
        assert [item["spec"]["address"] for item in listed["items"]] == [f"h:{number}" for number in range(5)]
        assert (await server.request("GET", f"{V2}/w0")).status == 200
    watches = [events(server, f"{V2}?watch=true&timeoutSeconds=5") for _ in range(3)]
    for watch in watches:
        assert [(await anext(watch))["object"]["apiVersion"] for _ in range(5)] == ["example.com/v2"] * 5
    assert converter.sizes == [5]
    await server.request("POST", WIDGETS, v1("new", host="n"))
    for watch in watches:
        assert (await anext(watch))["object"]["spec"] == {"address": "n:80"}
        await watch.aclose()
    assert converter.sizes == [5, 1]


async def test_unavailable_webhook_fails_requests_and_leaves_the_store_unchanged(
    server: API, hook: WebhookServer, converter: Converter
) -> None:
    await install(server, widgets(hook.by_url()))
    await server.request("POST", WIDGETS, v1(host="h"))
    converter.down = True
    read = await server.request("GET", f"{V2}/a")
    assert (read.status, read.json["message"]) == (500, f"conversion webhook for {V1_KIND} {DOWN}")
    for target in (V2, f"{V2}?resourceVersion=0", f"{V2}?watch=true&timeoutSeconds=1"):
        answer = await server.request("GET", target)
        assert (answer.status, answer.json["message"]) == (500, f"conversion webhook for {V1_KIND} {DOWN}"), target
    written = await server.request("POST", V2, v2("b", address="h:1"))
    assert (written.status, written.json["message"]) == (500, f"conversion webhook for {V2_KIND} {DOWN}")
    for method, media in (("PATCH", MERGE), ("DELETE", "application/json")):
        assert (await server.request(method, f"{V2}/a", {}, media=media)).status == 500
    assert [item["metadata"]["name"] for item in (await server.request("GET", WIDGETS)).json["items"]] == ["a"]
    assert (await server.request("PATCH", f"{WIDGETS}/a", {"spec": {"port": 2}}, media=MERGE)).status == 200
    converter.down = False
    assert (await server.request("GET", f"{V2}/a")).json["spec"] == {"address": "h:2"}
    assert len((await server.request("GET", V2)).json["items"]) == 1


async def test_object_that_cannot_be_converted_back_is_not_written(
    server: API, hook: WebhookServer, converter: Converter
) -> None:
    await install(server, widgets(hook.by_url()))

    def fail_on_the_way_back(response: dict[str, Any]) -> None:
        if response["convertedObjects"][0]["apiVersion"] == "example.com/v2":
            response["result"] = {"status": "Failure", "message": "no way back"}

    converter.spoil = fail_on_the_way_back
    answer = await server.request("POST", V2, v2(address="h:1"))
    assert (answer.status, answer.json["message"]) == (500, f"conversion webhook for {V1_KIND} failed: no way back")
    assert (await server.request("GET", f"{WIDGETS}/a")).status == 404


async def test_a_watch_whose_conversion_fails_ends_with_an_error_event(
    server: API, hook: WebhookServer, converter: Converter
) -> None:
    await install(server, widgets(hook.by_url()))
    await server.request("POST", WIDGETS, v1(host="h"))
    watch = events(server, f"{V2}?watch=true&timeoutSeconds=10")
    assert (await anext(watch))["type"] == "ADDED"
    converter.down = True
    await server.request("POST", WIDGETS, v1("b", host="h"))
    error = await anext(watch)
    assert (error["type"], error["object"]["code"], error["object"]["reason"]) == ("ERROR", 500, "InternalError")
    assert error["object"]["message"] == f"Internal error occurred: conversion webhook for {V1_KIND} {DOWN}"
    assert [event async for event in watch] == []


async def test_other_versions_are_served_while_one_cannot_be(
    server: API, hook: WebhookServer, converter: Converter
) -> None:
    """An object that the webhook refuses spoils lists of the other version, but no read of other objects."""
    await install(server, widgets(hook.by_url()))
    await server.request("POST", WIDGETS, v1("good", host="h"))
    await server.request("POST", WIDGETS, v1("poison", host="h"))

    def refuse_poison(response: dict[str, Any]) -> None:
        if any(obj["metadata"]["name"] == "poison" for obj in response["convertedObjects"]):
            response["result"] = {"status": "Failure", "message": "poison"}

    converter.spoil = refuse_poison
    assert (await server.request("GET", V2)).json["message"] == f"conversion webhook for {V1_KIND} failed: poison"
    assert (await server.request("GET", f"{V2}/good")).json["spec"] == {"address": "h:80"}
    assert len((await server.request("GET", WIDGETS)).json["items"]) == 2


async def test_objects_stored_before_the_storage_version_changed_are_converted_until_they_are_rewritten(
    server: API, hook: WebhookServer, converter: Converter
) -> None:
    await install(server, widgets(hook.by_url()))
    await server.request("POST", WIDGETS, v1("old", host="h"))
    current = (await server.request("GET", f"{DEFINITIONS}/widgets.example.com")).json
    moved = widgets(hook.by_url(), stored="v2")
    assert (
        await server.request("PUT", f"{DEFINITIONS}/widgets.example.com", current | {"spec": moved["spec"]})
    ).status == 200
    await server.request("POST", V2, v2("new", address="n:1"))
    await _until_v2_is_stored(server, "new")
    converter.reviews.clear()
    assert [item["spec"] for item in (await server.request("GET", V2)).json["items"]] == [
        {"address": "n:1", "note": "kept"},
        {"address": "h:80"},
    ]
    converter.down = True
    assert (await server.request("GET", f"{V2}/new")).status == 200
    converter.down = False
    await _rewrite(server, f"{V2}/old", changes=True)
    await _rewrite(server, f"{V2}/old", changes=False)
    converter.down = True
    assert (await server.request("GET", f"{V2}/old")).json["spec"] == {"address": "h:80"}
    stored = (await server.request("GET", f"{DEFINITIONS}/widgets.example.com")).json["status"]["storedVersions"]
    assert stored == ["v1", "v2"]


async def _rewrite(server: API, path: str, *, changes: bool) -> None:
    """Writes what was read. That changes something where it was stored in another version."""
    before = (await server.request("GET", path)).json
    after = (await server.request("PUT", path, before)).json
    assert (before["metadata"]["resourceVersion"] != after["metadata"]["resourceVersion"]) == changes


async def _until_v2_is_stored(server: API, name: str) -> None:
    """Only v2 knows notes, so one that stays shows which version is stored."""
    for _ in range(1000):
        patched = await server.request("PATCH", f"{V2}/{name}", {"spec": {"note": "kept"}}, media=MERGE)
        if patched.json["spec"].get("note"):
            return
    raise AssertionError("v1 is still stored")


async def test_another_webhook_takes_over_when_the_definition_changes(
    server: API, hook: WebhookServer, converter: Converter
) -> None:
    await install(server, widgets({"url": "https://127.0.0.1:1/"}))
    await server.request("POST", WIDGETS, v1(host="h"))
    lost = await server.request("GET", f"{V2}/a")
    assert lost.json["message"] == (
        f'conversion webhook for {V1_KIND} failed: Post "https://127.0.0.1:1/?timeout=30s": '
        "dial tcp 127.0.0.1:1: connect: connection refused"
    )
    change = {"spec": {"conversion": {"webhook": {"clientConfig": hook.by_url()}}}}
    assert (await server.request("PATCH", f"{DEFINITIONS}/widgets.example.com", change, media=MERGE)).status == 200
    assert (await eventually(server, 200, "GET", f"{V2}/a")).json["spec"] == {"address": "h:80"}


async def test_deleting_a_definition_deletes_its_converted_objects(server: API, hook: WebhookServer) -> None:
    await install(server, widgets(hook.by_url()))
    await server.request("POST", V2, v2(address="h:1"))
    await server.request("DELETE", f"{DEFINITIONS}/widgets.example.com")
    async with asyncio.timeout(PATIENCE):
        await until_gone(server, "widgets.example.com")


async def test_admission_webhooks_see_and_change_objects_in_the_version_that_their_rules_name(
    server: API, hook: WebhookServer, converter: Converter
) -> None:
    await install(server, widgets(hook.by_url()))
    rules = [{"operations": ["*"], "apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["widgets"]}]
    change = patching({"op": "replace", "path": "/spec/port", "value": 99})
    async with admission_webhooks(server) as hooks:
        async with hooks.configured("mutating", hooks.webhook("m", change, rules=rules)) as calls:
            made = await server.request("POST", V2, v2(address="h:1"))
            await server.request("PUT", f"{V2}/a", made.json | {"spec": {"address": "h:2"}})
            seen = [(request["object"], request["oldObject"]) for _, request in calls]
        assert [obj["spec"] for obj, _ in seen] == [{"host": "h", "port": 1}, {"host": "h", "port": 2}]
        assert seen[1][1]["spec"] == {"host": "h", "port": 99}
        assert made.json["spec"] == {"address": "h:99"}
        async with hooks.configured("validating", hooks.webhook("v", rules=rules)):
            converter.down = True
            failed = await server.request("POST", V2, v2("b", address="h:1"))
            assert (failed.status, DOWN in failed.json["message"]) == (500, True)


async def test_conversions_are_counted(server: API, hook: WebhookServer) -> None:
    from pilothouse.extensions.conversion.converter import CRD_LATENCY

    await install(server, widgets(hook.by_url()))
    labels = ("widgets.example.com", "v1", "v2", "true")
    before = CRD_LATENCY.row(labels).sum
    await server.request("POST", V2, v2(address="h:1"))
    assert CRD_LATENCY.row(labels).sum > before
