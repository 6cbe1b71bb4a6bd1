"""One event, written and read through either group of a whole server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import orjson
import pytest
from whole_server import whole_server

from pilothouse.machinery.objects import Json
from pilothouse.testing import API

CORE = "/api/v1/namespaces/default/events"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
NEW: Json = {
    "metadata": {"name": "e"},
    "eventTime": "2024-01-01T00:00:00.000000Z",
    "reportingController": "example.com/c",
    "reportingInstance": "i",
    "action": "Bind",
    "reason": "Scheduled",
    "type": "Normal",
    "note": "assigned",
    "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
}


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[API]:
    async with whole_server(tmp_path) as running:
        yield running


async def test_each_group_shows_what_the_other_wrote(server: API) -> None:
    created = await server.request("POST", EVENTS, NEW)
    assert created.status == 201, created.body
    core = (await server.request("GET", f"{CORE}/e")).json
    assert (core["apiVersion"], core["message"], core["involvedObject"]["name"]) == ("v1", "assigned", "p")
    patch: Json = {"message": "moved"}
    assert (await server.request("PATCH", f"{CORE}/e", patch, media="application/merge-patch+json")).status == 200
    assert (await server.request("GET", f"{EVENTS}/e")).json["note"] == "moved"


async def test_each_group_selects_by_its_own_words(server: API) -> None:
    await server.request("POST", EVENTS, NEW)
    for target in (f"{CORE}?fieldSelector=involvedObject.name=p", f"{EVENTS}?fieldSelector=regarding.name=p"):
        assert [item["metadata"]["name"] for item in (await server.request("GET", target)).json["items"]] == ["e"]
    for target in (f"{EVENTS}?fieldSelector=involvedObject.name=p", f"{CORE}?fieldSelector=regarding.name=p"):
        refused = await server.request("GET", target)
        assert (refused.status, "field label not supported" in refused.json["message"]) == (400, True)


async def test_both_groups_show_the_same_table(server: API) -> None:
    await server.request("POST", EVENTS, NEW)
    core, events = [(await server.request("GET", f"{path}/e", accept=TABLE)).json for path in (CORE, EVENTS)]
    assert core["columnDefinitions"] == events["columnDefinitions"]
    assert core["rows"][0]["cells"][1:] == events["rows"][0]["cells"][1:]


async def test_a_watch_shows_events_in_the_form_of_its_group(server: API) -> None:
    await server.request("POST", EVENTS, NEW)
    watch = await server.open("GET", f"{EVENTS}?watch=true")
    event = orjson.loads(await anext(watch.chunks()))
    await watch.close()
    assert (event["type"], event["object"]["note"]) == ("ADDED", "assigned")


async def test_who_asks_for_events_too_early_has_no_cache_to_wait_for(server: API) -> None:
    answer = await server.request("GET", f"{CORE}?resourceVersion=999999999")
    assert (answer.status, "retry-after" in answer.headers) == (504, False)
    assert "retryAfterSeconds" not in answer.json["details"]
