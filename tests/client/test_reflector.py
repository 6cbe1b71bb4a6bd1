"""The reflector against a real HTTP server that cuts, refuses, forgets and comes back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from api_server_fixture import ApiServer, is_list, is_watch
from patience import PATIENCE

from pilothouse.client.cache.keys import meta_namespace_key
from pilothouse.client.cache.list_watch import VeryShortWatch
from pilothouse.client.cache.reflector import Reflector
from pilothouse.client.fake_clock import FakeClock
from pilothouse.client.rest.client import Client
from pilothouse.machinery.errors import Expired
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import StatusError


class Recorder:
    """A store that keeps the state and lets a test wait for it."""

    def __init__(self) -> None:
        self.state: dict[str, Json] = {}
        self.replaces = 0
        self.resyncs = 0
        self._changed = asyncio.Condition()

    def add(self, obj: Json) -> None:
        self.state[meta_namespace_key(obj)] = obj
        self._notify()

    update = add

    def delete(self, obj: Json) -> None:
        self.state.pop(meta_namespace_key(obj), None)
        self._notify()

    def replace(self, objects: list[Json]) -> None:
        self.replaces += 1
        self.state = {meta_namespace_key(obj): obj for obj in objects}
        self._notify()

    def resync(self) -> None:
        self.resyncs += 1
        self._notify()

    def _notify(self) -> None:
        async def notify() -> None:
            async with self._changed:
                self._changed.notify_all()

        self._task = asyncio.ensure_future(notify())

    async def until(self, condition: Any) -> None:
        async with self._changed, asyncio.timeout(PATIENCE):
            await self._changed.wait_for(condition)

    async def equals(self, server: ApiServer) -> None:
        await self.until(lambda: self.state == server.objects)


class Running:
    def __init__(self, client: Client, **options: Any) -> None:
        self.store = Recorder()
        self.clock = FakeClock()
        self.errors: list[Exception] = []
        self.reflector = Reflector(
            client.resource("v1", "configmaps"),
            self.store,
            clock=self.clock,
            on_watch_error=lambda name, error: self.errors.append(error),
            **options,
        )

    async def back_off(self) -> None:
        """Lets the reflector's next wait pass."""
        await self.clock.wait_for_timers()
        self.clock.advance(60)

    async def until(self, condition: Any) -> None:
        """Waits for the store, letting every wait of the reflector pass."""

        async def let_time_pass() -> None:
            while True:
                await self.back_off()

        passing = asyncio.ensure_future(let_time_pass())
        try:
            await self.store.until(condition)
        finally:
            passing.cancel()


@asynccontextmanager
async def reflecting(client: Client, **options: Any) -> AsyncIterator[Running]:
    running = Running(client, **options)
    task = asyncio.ensure_future(running.reflector.run())
    try:
        yield running
    finally:
        task.cancel()
        await asyncio.wait({task})


@pytest.fixture(params=[True, False], ids=["streaming", "paged"])
def watch_list(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


async def test_the_store_becomes_and_stays_equal_to_the_collection(
    server: ApiServer, client: Client, watch_list: bool
) -> None:
    await server.put("a")
    await server.put("b", "other")
    async with reflecting(client, use_watch_list=watch_list) as running:
        await running.store.equals(server)
        await server.put("a", data={"x": "1"})
        await server.put("c")
        await server.remove("b", "other")
        await running.store.equals(server)
        assert running.reflector.last_sync_resource_version == str(server.version)
    assert running.store.replaces == 1


async def test_the_state_is_streamed_and_its_watch_goes_on(server: ApiServer, client: Client) -> None:
    await server.put("a")
    async with reflecting(client) as running:
        await running.store.equals(server)
        await server.put("b")
        await running.store.equals(server)
    assert [query["sendInitialEvents"] for _, _, query in server.requests] == ["true"]
    query = server.requests[0][2]
    assert query["resourceVersionMatch"] == "NotOlderThan"
    assert query["allowWatchBookmarks"] == "true"
    assert 300 <= int(query["timeoutSeconds"]) <= 600
    assert "resourceVersion" not in query


async def test_a_server_that_can_not_stream_is_listed_in_pages(server: ApiServer, client: Client) -> None:
    server.faults.stream = False
    server.faults.max_page = 2
    for name in "abcde":
        await server.put(name)
    async with reflecting(client) as running:
        await running.store.equals(server)
        await server.wait_for_watches()
    lists = [query for method, _, query in server.requests if "watch" not in query]
    assert [query.get("resourceVersion") for query in lists] == ["0", None, None]
    assert [query["limit"] for query in lists] == ["500"] * 3
    assert [bool(query.get("continue")) for query in lists] == [False, True, True]


async def test_pages_that_expire_midway_are_replaced_by_one_whole_list(server: ApiServer, client: Client) -> None:
    server.faults.max_page = 2
    for name in "abc":
        await server.put(name)
    server.faults.fail(410, reason="Expired", when=lambda request: "continue" in request.query)
    async with reflecting(client, use_watch_list=False) as running:
        await running.store.until(lambda: running.store.replaces == 1)
        await running.store.equals(server)


async def test_a_cut_watch_is_resumed_where_it_was_and_nothing_is_listed_again(
    server: ApiServer, client: Client, watch_list: bool
) -> None:
    await server.put("a")
    async with reflecting(client, use_watch_list=watch_list) as running:
        await running.store.equals(server)
        await server.put("b")
        await running.store.equals(server)
        version = server.version
        await server.wait_for_watches()
        server.cut()
        await server.put("c")
        await server.remove("a")
        await running.store.equals(server)
    assert running.store.replaces == 1
    assert server.requests[-1][2]["resourceVersion"] == str(version)


async def test_half_an_event_before_a_cut_is_not_taken_for_a_whole_one(server: ApiServer, client: Client) -> None:
    await server.put("a")
    async with reflecting(client) as running:
        await running.store.equals(server)
        await server.put("b")
        await running.store.equals(server)
        await server.send_raw(b'{"type":"ADDED","object":{"metadata":{"name":"half"')
        server.cut()
        await server.put("c")
        await running.store.equals(server)
    assert running.store.replaces == 1


async def test_a_bookmark_moves_the_place_from_which_a_watch_is_resumed(server: ApiServer, client: Client) -> None:
    await server.put("a")
    async with reflecting(client) as running:
        await running.store.equals(server)
        await server.wait_for_watches()
        server.version = 50
        await server.bookmark()
        await server.bookmark()
        await server.put("b")
        await running.store.equals(server)
        server.cut()
        await server.wait_for_requests(2)
    assert server.requests[1][2]["resourceVersion"] == "51"


async def test_a_watch_that_is_answered_410_leads_to_a_list_not_older_than_what_was_seen(
    server: ApiServer, client: Client, watch_list: bool
) -> None:
    await server.put("a")
    await server.put("b")
    async with reflecting(client, use_watch_list=watch_list) as running:
        await running.store.equals(server)
        await server.put("c")
        await running.store.equals(server)
        seen = str(server.version)
        await server.wait_for_watches()
        await server.remove("a")
        await server.put("d")
        server.history.clear()
        server.compacted = server.version
        server.cut()
        await running.back_off()
        await running.store.equals(server)
    assert any(isinstance(error, Expired) for error in running.errors)
    relist = next(
        query for _, _, query in server.requests[-2:] if query.get("sendInitialEvents") or "watch" not in query
    )
    assert relist["resourceVersion"] == seen
    assert watch_list or "limit" not in relist


async def test_an_error_event_with_410_leads_to_a_new_list(server: ApiServer, client: Client) -> None:
    await server.put("a")
    async with reflecting(client) as running:
        await running.store.equals(server)
        await server.wait_for_watches()
        await server.error_event(410, "Expired")
        await running.back_off()
        await running.store.until(lambda: running.store.replaces == 2)
        await running.store.equals(server)


def is_stream(request: Any) -> bool:
    return "sendInitialEvents" in request.query


async def test_a_stream_at_a_version_that_is_gone_is_asked_for_at_the_newest_one(
    server: ApiServer, client: Client
) -> None:
    await server.put("a")
    async with reflecting(client) as running:
        await running.store.equals(server)
        seen = str(server.version)
        await server.wait_for_watches()
        server.faults.fail(410, reason="Expired", when=is_stream)
        await server.error_event(410, "Expired")
        await running.back_off()
        await running.store.until(lambda: running.store.replaces == 2)
    streams = [query.get("resourceVersion") for _, _, query in server.requests if "sendInitialEvents" in query]
    assert streams == [None, seen, None]
    assert not any("watch" not in query for _, _, query in server.requests), "a server that streams was listed"


async def test_a_stream_that_is_answered_429_is_waited_for_and_not_replaced_by_a_list(
    server: ApiServer, client: Client
) -> None:
    await server.put("a")
    server.faults.fail(429, reason="TooManyRequests")
    async with reflecting(client) as running:
        await running.back_off()
        await running.store.equals(server)
    assert [query.get("sendInitialEvents") for _, _, query in server.requests] == ["true", "true"]


async def test_a_server_without_a_watch_cache_is_listed_in_pages_ever_after(server: ApiServer, client: Client) -> None:
    server.faults.max_page = 2
    for name in "abc":
        await server.put(name)
    async with reflecting(client, use_watch_list=False) as running:
        await running.store.equals(server)
        await server.wait_for_watches()
        await server.error_event(410, "Expired")
        await running.back_off()
        await running.store.until(lambda: running.store.replaces == 2)
    lists = [query for _, _, query in server.requests if "watch" not in query]
    assert [query.get("limit") for query in lists] == ["500"] * 4


async def test_an_event_that_the_store_refuses_does_not_keep_the_next_one_back(
    server: ApiServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with reflecting(client) as running:
        await server.wait_for_watches()
        add = running.store.add

        def choosy(obj: Json) -> None:
            if obj["metadata"]["name"] == "bad":
                raise ValueError("no room")
            add(obj)

        monkeypatch.setattr(running.store, "add", choosy)
        await server.put("bad")
        await server.put("good")
        await running.store.until(lambda: set(running.store.state) == {"default/good"})
        assert running.reflector.last_sync_resource_version == str(server.version)


async def test_a_list_that_is_answered_410_is_repeated_at_the_newest_version(server: ApiServer, client: Client) -> None:
    await server.put("a")
    server.faults.fail(410, reason="Expired", when=is_list)
    async with reflecting(client, use_watch_list=False) as running:
        await running.store.equals(server)
    assert [query.get("resourceVersion") for _, _, query in server.requests[:2]] == ["0", None]


async def test_a_version_that_the_server_has_not_reached_is_given_up(
    server: ApiServer, client: Client, watch_list: bool
) -> None:
    await server.put("a")
    async with reflecting(client, use_watch_list=watch_list) as running:
        await running.store.equals(server)
        await server.wait_for_watches()
        server.version = 1000
        await server.bookmark()
        await server.put("b")
        await running.store.equals(server)
        server.version, server.compacted = 20, 0
        large = {"causes": [{"reason": "ResourceVersionTooLarge"}]}
        server.faults.next.append((is_watch, 504, {"kind": "Status", "reason": "Timeout", "details": large}, {}))
        server.faults.next.append((lambda _: True, 504, {"kind": "Status", "reason": "Timeout", "details": large}, {}))
        server.cut()
        await running.back_off()
        await running.store.until(lambda: running.store.replaces == 2)


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_failing_server_is_asked_again_later(
    server: ApiServer, client: Client, watch_list: bool, status: int
) -> None:
    await server.put("a")
    reason = {429: "TooManyRequests"}.get(status, "")
    for _ in range(2):
        server.faults.fail(status, reason=reason)
    async with reflecting(client, use_watch_list=watch_list) as running:
        await running.until(lambda: running.store.state == server.objects)


async def test_a_429_on_a_watch_is_waited_out_without_a_new_list(server: ApiServer, client: Client) -> None:
    await server.put("a")
    async with reflecting(client) as running:
        await running.store.equals(server)
        await server.put("b")
        await running.store.equals(server)
        server.faults.fail(429, reason="TooManyRequests", when=is_watch)
        server.cut()
        await running.back_off()
        await server.put("c")
        await running.store.equals(server)
    assert running.store.replaces == 1


async def test_a_server_that_is_down_for_a_while_is_resumed_without_a_new_list(
    server: ApiServer, client: Client
) -> None:
    await server.put("a")
    async with reflecting(client) as running:
        await running.store.equals(server)
        await server.put("b")
        await running.store.equals(server)
        await server.stop()
        await running.back_off()
        await server.start()
        await server.put("c")
        await running.until(lambda: running.store.state == server.objects)
    assert running.store.replaces == 1


async def test_a_watch_that_ends_at_once_and_brings_nothing_is_an_error_and_not_a_busy_loop(
    server: ApiServer, client: Client
) -> None:
    await server.put("a")
    async with reflecting(client) as running:
        await running.store.equals(server)
        await server.wait_for_watches()
        server.cut()
        await running.clock.wait_for_timers()
    assert [type(error) for error in running.errors] == [VeryShortWatch]


async def test_waits_grow_up_to_a_limit_and_carry_jitter(server: ApiServer, client: Client) -> None:
    for _ in range(8):
        server.faults.fail(500)
    waits = []
    async with reflecting(client, use_watch_list=False) as running:
        for _ in range(8):
            await running.clock.wait_for_timers()
            wait = running.clock.next_timer()
            assert wait is not None
            waits.append(wait)
            running.clock.advance(wait)
    for wait, base in zip(waits, (0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30, 30), strict=True):
        assert base <= wait < 2 * base
    assert all(isinstance(error, StatusError) for error in running.errors)


async def test_the_store_is_resynced_in_every_period_in_which_somebody_wants_it(
    server: ApiServer, client: Client
) -> None:
    wanted = [True, False, True]
    options = {"resync_period": 30.0, "should_resync": lambda: wanted.pop(0)}
    async with reflecting(client, **options) as running:
        await server.wait_for_watches()
        for _ in range(3):
            await running.clock.wait_for_timers()
            running.clock.advance(30)
        await running.store.until(lambda: not wanted)
    assert running.store.resyncs == 2
