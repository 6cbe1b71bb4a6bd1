"""WATCH: order, resumption, selectors, initial events, bookmarks, media types."""

from __future__ import annotations

import asyncio
import struct
from pathlib import Path

from whole_server import CONFIG_MAPS, create_config_map, whole_server

from pilothouse.machinery.protobuf.envelope import FrameDecoder
from pilothouse.testing import API, Answer

WATCH = f"{CONFIG_MAPS}?watch=true&timeoutSeconds=1"


def shown(answer: Answer) -> list[tuple[str, str]]:
    return [(event["type"], event["object"]["metadata"].get("name", "")) for event in answer.events]


async def test_a_watch_from_a_version_replays_what_came_after_it(api: API) -> None:
    start = (await create_config_map(api, "a"))["metadata"]["resourceVersion"]
    made = await create_config_map(api, "b")
    await api.request("PUT", f"{CONFIG_MAPS}/b", made | {"data": {"k": "v"}})
    await api.request("DELETE", f"{CONFIG_MAPS}/a")
    answer = await api.request("GET", f"{WATCH}&resourceVersion={start}")
    assert shown(answer) == [("ADDED", "b"), ("MODIFIED", "b"), ("DELETED", "a")]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in answer.events]
    assert versions == sorted(versions)


async def test_a_watch_can_be_resumed_at_any_event_without_loss(api: API) -> None:
    start = (await create_config_map(api, "a"))["metadata"]["resourceVersion"]
    for i in range(6):
        await create_config_map(api, f"c{i}")
    whole = (await api.request("GET", f"{WATCH}&resourceVersion={start}")).events
    versions = [event["object"]["metadata"]["resourceVersion"] for event in whole]
    resumed = await asyncio.gather(*(api.request("GET", f"{WATCH}&resourceVersion={one}") for one in versions))
    assert [answer.events for answer in resumed] == [whole[position + 1 :] for position in range(len(whole))]


async def test_a_selector_turns_changes_into_comings_and_goings(api: API) -> None:
    start = (await create_config_map(api, "x"))["metadata"]["resourceVersion"]
    made = await create_config_map(api, "a", metadata={"labels": {"in": "no"}})
    made["metadata"]["labels"] = {"in": "yes"}
    made = (await api.request("PUT", f"{CONFIG_MAPS}/a", made)).json
    made["metadata"]["labels"] = {"in": "no"}
    await api.request("PUT", f"{CONFIG_MAPS}/a", made)
    answer = await api.request("GET", f"{WATCH}&resourceVersion={start}&labelSelector=in%3Dyes")
    assert shown(answer) == [("ADDED", "a"), ("DELETED", "a")]


async def test_initial_events_end_with_a_bookmark_that_says_so(api: API) -> None:
    await create_config_map(api, "a")
    await create_config_map(api, "b")
    initial = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    events = (await api.request("GET", WATCH + initial)).events
    assert [event["type"] for event in events[:3]] == ["ADDED", "ADDED", "BOOKMARK"]
    end = events[2]["object"]["metadata"]
    assert end["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert int(end["resourceVersion"]) >= int(events[1]["object"]["metadata"]["resourceVersion"])


async def test_the_bookmark_of_a_kind_with_a_spec_shows_its_zero_value(api: API) -> None:
    initial = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    events = (await api.request("GET", f"/api/v1/namespaces?watch=true&timeoutSeconds=1{initial}")).events
    bookmark = next(event for event in events if event["type"] == "BOOKMARK")
    assert {"spec", "status"} <= bookmark["object"].keys()


async def test_a_live_event_reaches_a_watch_that_is_open(api: API) -> None:
    start = (await create_config_map(api, "a"))["metadata"]["resourceVersion"]
    response = await api.open("GET", f"{CONFIG_MAPS}?watch=true&resourceVersion={start}")
    stream = response.chunks()
    await create_config_map(api, "b")
    assert b'"type":"ADDED"' in await anext(stream)
    await response.close()


async def test_a_version_from_before_the_start_ends_the_watch_with_an_error_event(tmp_path: Path) -> None:
    async with whole_server(tmp_path) as api:
        start = (await create_config_map(api, "a"))["metadata"]["resourceVersion"]
        await create_config_map(api, "b")
    async with whole_server(tmp_path) as api:
        (event,) = (await api.request("GET", f"{WATCH}&resourceVersion={start}")).events
    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")


async def test_initial_events_from_the_future_end_the_watch_with_an_error_event(api: API) -> None:
    initial = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    answer = await api.request("GET", f"{WATCH}{initial}&resourceVersion=99999999")
    (event,) = answer.events
    assert (answer.status, event["type"], event["object"]["code"]) == (200, "ERROR", 504)
    assert event["object"]["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


async def test_a_watch_as_list_of_metadata_ends_at_its_first_event(api: API) -> None:
    await create_config_map(api, "a")
    accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
    answer = await api.request("GET", f"{CONFIG_MAPS}?watch=true", accept=accept)
    assert (answer.status, answer.body) == (200, b"")


async def test_a_protobuf_watch_is_a_stream_of_frames(api: API) -> None:
    start = (await create_config_map(api, "a"))["metadata"]["resourceVersion"]
    await create_config_map(api, "b")
    answer = await api.request("GET", f"{WATCH}&resourceVersion={start}", accept="application/vnd.kubernetes.protobuf")
    assert answer.headers["content-type"] == "application/vnd.kubernetes.protobuf;stream=watch"
    assert struct.unpack(">I", answer.body[:4])[0] == len(answer.body) - 4
    (frame,) = FrameDecoder().feed(answer.body)
    assert frame.type == "ADDED"


async def test_a_watch_as_table_shows_its_columns_once(api: API) -> None:
    start = (await create_config_map(api, "a"))["metadata"]["resourceVersion"]
    await create_config_map(api, "b")
    await create_config_map(api, "c")
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    events = (await api.request("GET", f"{WATCH}&resourceVersion={start}", accept=accept)).events
    assert events[0]["object"]["columnDefinitions"]
    assert events[1]["object"]["columnDefinitions"] is None


async def test_yaml_cannot_be_watched(api: API) -> None:
    assert (await api.request("GET", WATCH, accept="application/yaml")).status == 406


async def test_the_deprecated_watch_paths_still_watch(api: API) -> None:
    start = (await create_config_map(api, "a"))["metadata"]["resourceVersion"]
    await create_config_map(api, "b")
    path = f"/api/v1/watch/namespaces/default/configmaps?timeoutSeconds=1&resourceVersion={start}"
    assert shown(await api.request("GET", path)) == [("ADDED", "b")]


async def test_a_watch_nobody_reads_is_written_in_parts(api: API) -> None:
    for number in range(8):
        await create_config_map(api, f"large-{number}", data={"k": "v" * 200_000})
    response = await api.open("GET", WATCH)
    parts = [part async for part in response.chunks()]
    assert b"".join(parts).count(b'"type":"ADDED"') == 8
    assert max(map(len, parts)) < 300_000
