"""Faults: what a server with --testing does wrong, to whom, and how often."""

from __future__ import annotations

import asyncio
import ssl
import time
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
from awaiting import until

from pilothouse.errors import ConnectionFailed, Invalid
from pilothouse.testing import API, StartError, server

pytestmark = pytest.mark.asyncio(loop_scope="module")

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


async def create(api: API, name: str) -> int:
    return (await api.request("POST", CONFIG_MAPS, {"metadata": {"name": name}})).status


async def test_the_answer_of_a_fault_is_a_status_as_often_as_it_says(api: API) -> None:
    wishes = {"code": 429, "retryAfterSeconds": 3, "message": "not now"}
    async with api.fault(verbs=["create"], resources=["configmaps"], times=1, answer=wishes) as fault:
        refused = await api.request("POST", CONFIG_MAPS, {"metadata": {"name": "once"}})
        assert (refused.status, refused.headers["retry-after"]) == (429, "3")
        assert (refused.json["reason"], refused.json["message"]) == ("TooManyRequests", "not now")
        assert await create(api, "once") == 201
        await has_hit(api, fault.name, 1)


async def has_hit(api: API, fault: str, hits: int) -> None:
    faults = api.client().resource("testing.pilothouse.dev/v1alpha1", "faults")
    await until(faults, fault, lambda found: (found.get("status") or {}).get("hits") == hits)


async def test_a_fault_concerns_only_who_fits_every_list(api: API) -> None:
    match: dict[str, Any] = {"users": ["ann"], "resources": ["configmaps"], "names": ["pi*"], "verbs": ["get"]}
    async with api.fault(**match, answer=500):
        ann = api.as_user("ann", groups=["system:masters"])
        assert (await ann.request("GET", f"{CONFIG_MAPS}/pilot")).status == 500
        assert (await ann.request("GET", f"{CONFIG_MAPS}/other")).status == 404
        assert (await ann.request("GET", "/api/v1/namespaces/default/secrets/pilot")).status == 404
        assert (await api.request("GET", f"{CONFIG_MAPS}/pilot")).status == 404


async def test_a_fault_that_concerns_all_spares_the_bench_and_the_servers_own_calls(api: API) -> None:
    async with api.fault(answer=503):
        assert (await api.request("GET", "/api/v1/nodes")).status == 503
        assert (await api.request("GET", "/version")).status == 503
    assert (await api.request("GET", "/api/v1/nodes")).status == 200


async def test_a_fault_that_is_wrong_is_refused_by_its_fields(api: API) -> None:
    with pytest.raises(Invalid, match=r"spec\.effect\.answer\.code.*greater than or equal to 400"):
        await api.faults.add(answer=200)
    with pytest.raises(Invalid, match=r"spec\.effect: Invalid value: only one of answer"):
        await api.faults.add(answer=500, cut="After")
    with pytest.raises(Invalid, match="an effect is needed"):
        await api.faults.add(verbs=["get"])
    with pytest.raises(TypeError, match="unknown fields of a Fault: colour"):
        await api.faults.add(colour="red")


async def test_a_delay_passes_before_the_answer(api: API) -> None:
    async with api.fault(resources=["nodes"], delay={"duration": "100ms", "jitter": "1ms"}):
        began = time.monotonic()
        assert (await api.request("GET", "/api/v1/nodes")).status == 200
        assert time.monotonic() - began >= 0.1


@pytest.mark.parametrize(("when", "status"), [("Before", 404), ("After", 200)])
async def test_a_connection_is_cut_before_or_after_the_write(api: API, when: str, status: int) -> None:
    name = f"cut-{when.lower()}"
    async with api.fault(verbs=["create"], resources=["configmaps"], cut=when):
        with pytest.raises(ConnectionFailed):
            await api.client().resource("v1", "configmaps", namespace="default").create({"metadata": {"name": name}})
    assert (await api.request("GET", f"{CONFIG_MAPS}/{name}")).status == status


async def watched(api: API, **wishes: Any) -> list[str]:
    """Return the names in the events of a watch of five objects that the fault concerns, and how it ended."""
    revision = (await api.request("GET", CONFIG_MAPS)).json["metadata"]["resourceVersion"]
    for number in range(5):
        await api.request("POST", CONFIG_MAPS, {"metadata": {"name": f"w{number}"}})
    async with api.fault(verbs=["watch"], resources=["configmaps"], **wishes):
        answer = await api.request("GET", f"{CONFIG_MAPS}?watch=1&timeoutSeconds=1&resourceVersion={revision}")
    for number in range(5):
        await api.request("DELETE", f"{CONFIG_MAPS}/w{number}")
    return [event["object"].get("reason") or event["object"]["metadata"]["name"] for event in answer.events]


async def test_events_of_a_watch_are_dropped_and_sent_twice(api: API) -> None:
    assert await watched(api, watch={"dropEvery": 2, "duplicateEvery": 3}) == ["w0", "w2", "w2", "w4"]


async def test_a_watch_expires_after_some_events_or_at_once(api: API) -> None:
    assert await watched(api, watch={"expireAfterEvents": 2}) == ["w0", "w1", "Expired"]
    assert await watched(api, answer=410) == ["Expired"]


async def test_a_watch_lags_behind_by_some_revisions(api: API) -> None:
    assert await watched(api, stale_by_revisions=1000) == []
    assert await watched(api, stale_by_revisions=1) == ["w0", "w1", "w2", "w3", "w4"]


async def test_a_watch_is_cut_after_some_events(api: API) -> None:
    config_maps = api.client().resource("v1", "configmaps", namespace="kube-system")
    async with api.fault(verbs=["watch"], resources=["configmaps"], watch={"cutAfterEvents": 1}):
        seen = []
        async with await config_maps.watch() as watch:
            with pytest.raises(ConnectionFailed):
                seen.extend([event async for event in watch])


async def test_a_fault_hits_the_request_after_the_skipped_ones_by_name(api: API) -> None:
    match: dict[str, Any] = {"verbs": ["create"], "resources": ["configmaps"], "names": ["nth*"], "skip": 1, "times": 1}
    async with api.fault(**match, answer=500):
        assert [await create(api, name) for name in ("nth-1", "other", "nth-2", "nth-3")] == [201, 201, 500, 201]


@pytest.mark.parametrize(("when", "while_held", "after"), [("Before", 404, 404), ("After", 200, 200)])
async def test_a_held_request_is_cut_when_the_fault_is_deleted(
    api: API, when: str, while_held: int, after: int
) -> None:
    name = f"held-{when.lower()}"
    fault = await api.faults.add(f"hold-{name}", verbs=["create"], resources=["configmaps"], times=1, hold=when)
    request = asyncio.create_task(create(api, name))
    await has_hit(api, fault.name, 1)
    while when == "After" and (await api.request("GET", f"{CONFIG_MAPS}/{name}")).status == 404:
        pass
    assert (await api.request("GET", f"{CONFIG_MAPS}/{name}")).status == while_held
    await api.settle()  # a held request is not in flight
    await fault.remove()
    with pytest.raises(ConnectionFailed):
        await request
    assert (await api.request("GET", f"{CONFIG_MAPS}/{name}")).status == after


async def test_a_request_that_is_held_through_is_handled_later(api: API) -> None:
    fault = await api.faults.add(verbs=["create"], resources=["configmaps"], times=1, hold="Through")
    request = asyncio.create_task(create(api, "held-through"))
    await has_hit(api, fault.name, 1)
    await fault.remove()
    assert await request == 201


@pytest.mark.parametrize(
    ("effect", "names"),
    [
        ("Duplicate", ["w0", "w1", "w1", "w2", "w3", "w4"]),
        ("Drop", ["w0", "w2", "w3", "w4"]),
        ("Expire", ["w0", "Expired"]),
        ("Hold", ["w0"]),
    ],
)
async def test_one_event_of_a_watch_is_disturbed(api: API, effect: str, names: list[str]) -> None:
    assert await watched(api, events={"names": ["w1*"], "types": ["ADDED"], "effect": effect}) == names


@pytest.mark.parametrize(
    ("effect", "seen"),
    [
        ("Hold", ["ADDED m1", "MODIFIED m1", "ADDED m2", "DELETED m2", "ADDED m3"]),
        ("HoldLatest", ["MODIFIED m1", "ADDED m3"]),
        ("HoldThenExpire", ["ERROR Expired"]),
    ],
)
async def test_held_events_arrive_when_the_fault_is_deleted(api: API, effect: str, seen: list[str]) -> None:
    space = f"/api/v1/namespaces/held-{effect.lower()}"
    await api.request("POST", "/api/v1/namespaces", {"metadata": {"name": space.rpartition("/")[2]}})
    maps = f"{space}/configmaps"
    fault = await api.faults.add(verbs=["watch"], resources=["configmaps"], events={"names": ["m*"], "effect": effect})
    watch = await api.open("GET", f"{maps}?watch=1&fieldSelector=metadata.name!=kube-root-ca.crt")
    await api.request("POST", maps, {"metadata": {"name": "m1"}})
    await api.request("PATCH", f"{maps}/m1", {"data": {"a": "b"}}, media="application/merge-patch+json")
    for verb, path in (("POST", ""), ("DELETE", "/m2")):
        await api.request(verb, maps + path, {"metadata": {"name": "m2"}} if verb == "POST" else None)
    await api.request("POST", maps, {"metadata": {"name": "m3"}})
    await fault.remove()
    found: list[str] = []
    buffer = b""
    async for chunk in watch.chunks():
        buffer += chunk
        events = [orjson.loads(line) for line in buffer.splitlines() if line.endswith(b"}")]
        found = [
            f"{event['type']} {event['object'].get('reason') or event['object']['metadata']['name']}"
            for event in events
        ]
        if len(found) >= len(seen):
            break
    await watch.close()
    assert found == seen


async def test_an_api_server_that_stands_still_serves_cached_lists_of_its_revision(api: API) -> None:
    before = int((await api.request("GET", CONFIG_MAPS)).json["metadata"]["resourceVersion"])
    await create(api, "after-the-stand")
    async with api.fault(resources=["configmaps"], verbs=["list", "watch"], at_revision=before):
        for query, expected in (("?resourceVersion=0", False), ("", True)):
            items = (await api.request("GET", CONFIG_MAPS + query)).json["items"]
            assert ("after-the-stand" in {item["metadata"]["name"] for item in items}) is expected
        query = f"?watch=1&timeoutSeconds=1&resourceVersion={before}"
        assert (await api.request("GET", CONFIG_MAPS + query)).events == []
    assert len((await api.request("GET", CONFIG_MAPS + query)).events) == 1


async def test_a_stale_list_shows_what_was(api: API) -> None:
    await create(api, "newer")
    async with api.fault(verbs=["list"], resources=["configmaps"], stale_by_revisions=30):
        stale = (await api.request("GET", CONFIG_MAPS)).json
        assert "newer" not in {item["metadata"]["name"] for item in stale["items"]}
    assert "newer" in {item["metadata"]["name"] for item in (await api.request("GET", CONFIG_MAPS)).json["items"]}


async def test_all_connections_of_a_user_are_closed_at_once(api: API) -> None:
    bob = api.as_user("bob", groups=["system:masters"])
    open_watch = await bob.open("GET", f"{CONFIG_MAPS}?watch=1&resourceVersion=0")
    async with api.fault(users=["bob"], close_connections=True) as fault:
        with pytest.raises(ConnectionFailed):
            await open_watch.read()
        await has_hit(api, fault.name, 1)


async def test_the_test_bench_of_a_server_that_others_can_reach_needs_authorization() -> None:
    with pytest.raises(StartError, match=r"--bind-address=0\.0\.0\.0 needs --authorization-mode=Node,RBAC"):
        async with server(testing=True, bind_address="0.0.0.0"):
            pass


async def test_others_reach_the_test_bench_with_a_token_and_not_without(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.csv"
    tokens.write_text("hidden,tester,1,system:masters\n")
    flags: dict[str, Any] = {"authorization_mode": "Node,RBAC", "token_auth_file": str(tokens)}
    async with server(testing=True, bind_address="0.0.0.0", **flags) as api:
        url = f"{api.url}/apis/testing.pilothouse.dev/v1alpha1/faults"
        async with aiohttp.ClientSession() as session:
            tls = ssl.create_default_context(cafile=api.ca)
            assert (await session.get(url, ssl=tls)).status == 403
            assert (await session.get(url, ssl=tls, headers={"Authorization": "Bearer hidden"})).status == 200
