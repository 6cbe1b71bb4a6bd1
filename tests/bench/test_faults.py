"""Faults: what a server with --testing does wrong, to whom, and how often."""

from __future__ import annotations

import ssl
import time
from pathlib import Path
from typing import Any

import aiohttp
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
    flags = {"bind_address": "0.0.0.0", "authorization_mode": "Node,RBAC", "token_auth_file": str(tokens)}
    async with server(testing=True, **flags) as api:
        url = f"{api.url}/apis/testing.pilothouse.dev/v1alpha1/faults"
        async with aiohttp.ClientSession() as session:
            tls = ssl.create_default_context(cafile=api.ca)
            assert (await session.get(url, ssl=tls)).status == 403
            assert (await session.get(url, ssl=tls, headers={"Authorization": "Bearer hidden"})).status == 200
