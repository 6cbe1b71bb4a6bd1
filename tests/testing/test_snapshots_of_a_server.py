"""A server put back to a snapshot: objects, watches, and everything that it keeps in memory about them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import orjson
import pytest
import pytest_asyncio
from custom_resources import DEFINITIONS, WIDGETS, definition, eventually, install, widget
from whole_server import CONFIG_MAPS, create_config_map, whole_server

from pilothouse.testing import API, Server, StoredSnapshot, server

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module", name="running")
async def _running() -> AsyncIterator[tuple[API, StoredSnapshot]]:
    async with whole_server() as api:
        yield api, await api.snapshot()


@pytest_asyncio.fixture(loop_scope="module", name="api")
async def _api(running: tuple[API, StoredSnapshot]) -> AsyncIterator[API]:
    """The one server of this module, as it was at its start."""
    api, start = running
    yield api
    await api.restore(start)


async def test_a_test_finds_nothing_of_the_one_before(api: API) -> None:
    before = await api.snapshot()
    for name in "abc":
        await create_config_map(api, name)
    await api.restore(before)
    assert (await api.request("GET", CONFIG_MAPS)).json["items"] == []
    assert (await create_config_map(api, "a"))["metadata"]["name"] == "a"


async def test_resource_versions_only_rise(api: API) -> None:
    created = await create_config_map(api, "a")
    before = await api.snapshot()
    await api.request("PATCH", f"{CONFIG_MAPS}/a", {"data": {"a": "b"}}, media="application/merge-patch+json")
    await api.restore(before)
    restored = (await api.request("GET", f"{CONFIG_MAPS}/a")).json
    assert "data" not in restored
    assert restored["metadata"]["uid"] == created["metadata"]["uid"]
    assert int(restored["metadata"]["resourceVersion"]) > int(created["metadata"]["resourceVersion"]) + 1


async def test_clients_that_watch_are_told_that_the_past_is_gone(api: API) -> None:
    before = await api.snapshot()
    created = await create_config_map(api, "a")
    since = created["metadata"]["resourceVersion"]
    watch = await api.open("GET", f"{CONFIG_MAPS}?watch=true&resourceVersion={since}")
    await api.restore(before)
    events = [orjson.loads(line) for line in (await watch.read()).splitlines()]
    assert [event["type"] for event in events] == ["DELETED", "ERROR"]
    assert (events[1]["object"]["code"], events[1]["object"]["reason"]) == (410, "Expired")
    again = await api.open("GET", f"{CONFIG_MAPS}?watch=true&resourceVersion={since}")
    assert orjson.loads(await again.read())["object"]["code"] == 410
    exactly = f"{CONFIG_MAPS}?resourceVersion={since}&resourceVersionMatch=Exact"
    assert (await api.request("GET", exactly)).status == 410


async def test_a_definition_of_after_the_snapshot_is_gone_with_its_objects(api: API) -> None:
    before = await api.snapshot()
    await _with_a_widget(api)
    await api.restore(before)
    await eventually(api, 404, "GET", WIDGETS)
    await install(api, definition())
    assert (await eventually(api, 200, "GET", WIDGETS)).json["items"] == []


async def test_a_definition_that_was_deleted_is_back_with_its_objects(api: API) -> None:
    await _with_a_widget(api)
    before = await api.snapshot()
    await api.request("DELETE", f"{DEFINITIONS}/widgets.example.com")
    await eventually(api, 404, "GET", WIDGETS)
    await api.restore(before)
    found = (await eventually(api, 200, "GET", WIDGETS)).json["items"]
    assert [item["metadata"]["name"] for item in found] == ["a"]


async def test_addresses_of_services_are_free_again_and_still_unique(api: API) -> None:
    before = await api.snapshot()
    first = {await _service(api, f"s{number}", "10.0.0.77" if number == 0 else None) for number in range(3)}
    await api.restore(before)
    again = [await _service(api, "t0", "10.0.0.77"), *[await _service(api, f"t{n}", None) for n in range(1, 5)]]
    assert "10.0.0.77" in first
    assert len(set(again)) == len(again)


async def test_a_fork_has_everything_and_shares_nothing(api: API) -> None:
    await create_config_map(api, "both")
    async with api.fork() as other:
        assert (await other.request("GET", f"{CONFIG_MAPS}/both")).status == 200
        await create_config_map(other, "there")
        await create_config_map(api, "here")
        assert (await api.request("GET", f"{CONFIG_MAPS}/there")).status == 404
        assert (await other.request("GET", f"{CONFIG_MAPS}/here")).status == 404
        ann = api.as_user("ann", groups=["system:masters"])
        assert ann.ca.read_bytes() == other.ca.read_bytes()


async def test_a_server_in_a_process_of_its_own_keeps_its_snapshots_there() -> None:
    async with server(process=True, testing=True, controllers="-*") as api:
        before = await api.snapshot()
        await create_config_map(api, "a")
        async with api.fork() as other:
            assert (await other.request("GET", f"{CONFIG_MAPS}/a")).status == 200
        await api.restore(before)
        assert (await api.request("GET", f"{CONFIG_MAPS}/a")).status == 404


async def test_the_same_without_an_event_loop() -> None:
    await asyncio.to_thread(_on_threads)


def _on_threads() -> None:
    with Server(controllers="-*") as api:
        before = api.snapshot()
        body = {"metadata": {"name": "a"}}
        assert api.request("POST", CONFIG_MAPS, body).status == 201
        with api.fork() as other:
            assert other.request("GET", f"{CONFIG_MAPS}/a").status == 200
            api.restore(before)
            assert other.request("GET", f"{CONFIG_MAPS}/a").status == 200
        assert api.request("GET", f"{CONFIG_MAPS}/a").status == 404


async def _with_a_widget(api: API) -> None:
    await install(api, definition())
    await eventually(api, 201, "POST", WIDGETS, widget())


async def _service(api: API, name: str, ip: str | None) -> str:
    spec = {"ports": [{"port": 80}], **({"clusterIP": ip} if ip else {})}
    answer = await api.request(
        "POST", "/api/v1/namespaces/default/services", {"metadata": {"name": name}, "spec": spec}
    )
    assert answer.status == 201, answer.body
    return str(answer.json["spec"]["clusterIP"])
