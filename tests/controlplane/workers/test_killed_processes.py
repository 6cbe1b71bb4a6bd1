"""A server, a worker or the store's process that is killed takes nothing with it that a client was told.

Writers change objects of their own, watchers follow all of them, each over connections of its own, while processes are
killed one after the other. `KILLS=1000` kills more of them under 32 writers, and `-s` shows what was counted.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE
from restarts import server_client
from serving_process import ServeProcess
from worker_processes import WORKERS, WorkersServer

from pilothouse.client import ListOptions
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.errors import ConnectionFailed
from pilothouse.client.rest.resource import ResourceClient
from pilothouse.client.wait import poll
from pilothouse.machinery.errors import AlreadyExists, NotFound
from pilothouse.machinery.objects import name_of, resource_version_of
from pilothouse.machinery.status_error import StatusError

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("KILLS", "4"))
WRITERS, WATCHERS = 8 if KILLS < 10 else 32, 3
LAST = "the-last-one"


def config_maps(own: Client) -> ResourceClient:
    return own.resource("v1", "configmaps", namespace="default")


class Writer:
    """Counts its object up. `acknowledged` has the number of each revision that the server told it."""

    def __init__(self, server: ServeProcess, number: int) -> None:
        self._server = server
        self._name = f"writer-{number}"
        self.acknowledged: dict[int, int] = {}
        self._count = 0

    async def write_for_ever(self) -> None:
        while True:
            with suppress(StatusError, ConnectionFailed):
                async with server_client(self._server) as own:
                    await self._write(config_maps(own))
            await asyncio.sleep(0.02)

    async def _write(self, objects: ResourceClient) -> None:
        """Begins with what is there, for the last write may have been done or not when it was not answered."""
        try:
            current = await objects.get(self._name)
        except NotFound:
            current = await objects.create({"metadata": {"name": self._name}, "data": {"n": "0"}})
        while True:
            found = int(current["data"]["n"])
            assert self._count - 1 <= found <= self._count or not self.acknowledged
            assert found >= max(self.acknowledged.values(), default=0), "an acknowledged write is lost"
            self._count = found + 1
            current = await objects.update(current | {"data": {"n": str(self._count)}})
            self.acknowledged[int(resource_version_of(current))] = self._count


class Watcher:
    """Follows all objects, as a reflector does: it resumes behind the last event where it is cut off, and lists again
    where a worker that has just started does not know what was before."""

    def __init__(self, server: ServeProcess) -> None:
        self._server = server
        self._since = 0
        self.events: list[tuple[int, str, str]] = []
        self.listed: list[tuple[int, int]] = []
        """From which revision to which a list stands for the events."""
        self._at_the_end = False

    async def watch_to_the_end(self) -> None:
        """Until the last object was told by an event or a list."""
        while not self._at_the_end:
            with suppress(ConnectionFailed, StatusError):
                async with server_client(self._server) as own:
                    await self._follow(config_maps(own))
            await asyncio.sleep(0.01)

    async def _follow(self, objects: ResourceClient) -> None:
        if self._since == 0 or not await self._watch(objects):
            listing = await objects.list()
            reached = int(resource_version_of(listing))
            assert reached >= self._since, "a list went back in time"
            self._at_the_end = any(name_of(item) == LAST for item in listing["items"])
            self.listed.append((self._since, reached))
            self._since = reached

    async def _watch(self, objects: ResourceClient) -> bool:
        """Return False where events are gone that this watcher has not seen."""
        async with await objects.watch(ListOptions(resource_version=str(self._since))) as watch:
            async for event in watch:
                if event.type == "ERROR":
                    assert event.object["code"] == 410
                    return False
                self._since = int(resource_version_of(event.object))
                number = (event.object.get("data") or {}).get("n", "")
                self.events.append((self._since, name_of(event.object), number))
                self._at_the_end = name_of(event.object) == LAST
                if self._at_the_end:
                    break
        return True


def checked(watcher: Watcher, writers: list[Writer]) -> None:
    """No event is missing, none comes twice, and each tells what was written."""
    revisions = [revision for revision, _, _ in watcher.events]
    assert revisions == sorted(set(revisions))
    told = {revision: number for revision, _, number in watcher.events}
    for writer in writers:
        for revision, number in writer.acknowledged.items():
            if not any(since < revision <= reached for since, reached in watcher.listed):
                assert told[revision] == str(number)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[WorkersServer]:
    server = WorkersServer(tmp_path / "data")
    yield server
    server.close()


async def all_are_ready(server: WorkersServer, *, without: set[int]) -> None:
    """All processes are there, none of them one of those, and they say that they are ready."""

    async def are_ready() -> bool:
        pids = set(server.processes().values())
        if len(pids) != WORKERS + 1 or pids & without:
            return False
        try:
            return (await asyncio.to_thread(server.get, "/readyz"))[0] == 200
        except OSError:
            return False

    await poll(are_ready, interval=0.05, timeout=PATIENCE)


async def under_load(server: ServeProcess, kill: Callable[[], Awaitable[None]]) -> None:
    writers = [Writer(server, number) for number in range(WRITERS)]
    watchers = [Watcher(server) for _ in range(WATCHERS)]
    writing = [asyncio.ensure_future(writer.write_for_ever()) for writer in writers]
    watching = [asyncio.ensure_future(watcher.watch_to_the_end()) for watcher in watchers]
    longest = 0.0
    for _ in range(KILLS):
        await until_all_go_on(writers, watchers)
        start = time.monotonic()
        await kill()
        longest = max(longest, time.monotonic() - start)
    await until_all_go_on(writers, watchers)
    await poll(lambda: all(writer.acknowledged for writer in writers), interval=0.02, timeout=PATIENCE)
    await stopped(writing)
    await poll(partial(wrote_the_last_one, server), interval=0.05, timeout=PATIENCE)
    await asyncio.wait_for(asyncio.gather(*watching), PATIENCE)
    for watcher in watchers:
        checked(watcher, writers)
    written, told = acknowledged_by(writers), min(len(watcher.events) for watcher in watchers)
    told_of = f"each watcher told of at least {told} changes by events"
    print(f"{KILLS} kills, {written} writes acknowledged, {told_of}, ready again after {longest:.1f} s at the latest")


async def until_all_go_on(writers: Sequence[Writer], watchers: Sequence[Watcher]) -> None:
    """As many more writes as there are writers, and as many more events for each watcher: a watcher that only lists
    shows nothing about events."""
    written, told = acknowledged_by(writers), [len(watcher.events) for watcher in watchers]

    def go_on() -> bool:
        events = (len(watcher.events) for watcher in watchers)
        watched = all(now >= before + WRITERS for now, before in zip(events, told, strict=True))
        return watched and acknowledged_by(writers) >= written + WRITERS

    await poll(go_on, interval=0.02, timeout=PATIENCE)


def acknowledged_by(writers: Sequence[Writer]) -> int:
    return sum(len(writer.acknowledged) for writer in writers)


async def wrote_the_last_one(server: ServeProcess) -> bool:
    try:
        async with server_client(server) as own:
            await config_maps(own).create({"metadata": {"name": LAST}})
    except AlreadyExists:
        return True
    except (ConnectionFailed, StatusError):
        return False
    return True


async def stopped(writing: Sequence[asyncio.Future[Any]]) -> None:
    """Raises what ended a writer before."""
    for task in writing:
        task.cancel()
    for outcome in await asyncio.gather(*writing, return_exceptions=True):
        if not isinstance(outcome, asyncio.CancelledError):
            raise outcome


async def test_a_server_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    """Clients find the new process by the kubeconfig, which it writes into the data directory."""
    running = first = ServeProcess(tmp_path / "data", "--workers=1")

    async def kill() -> None:
        nonlocal running
        running.signal(signal.SIGKILL)
        running.wait()
        running.close()
        running = await asyncio.to_thread(ServeProcess, tmp_path / "data", "--workers=1")

    try:
        await under_load(first, kill)
    finally:
        running.close()


async def test_workers_that_are_killed_lose_nothing(server: WorkersServer) -> None:
    chance = random.Random(1)

    async def kill() -> None:
        killed = server.kill(f"worker {chance.randint(1, WORKERS)}")
        await all_are_ready(server, without={killed})

    await under_load(server, kill)


async def test_a_store_that_is_killed_loses_nothing(server: WorkersServer) -> None:
    async def kill() -> None:
        before = set(server.processes().values())
        server.kill("store")
        await all_are_ready(server, without=before)

    await under_load(server, kill)


async def test_a_store_that_ends_while_a_worker_waits_to_be_started_again_is_started_before_it(
    server: WorkersServer,
) -> None:
    for _ in range(2):  # what ends again and again has to wait
        killed = server.kill("worker 2")
        await all_are_ready(server, without={killed})
    before = set(server.processes().values())
    killed = server.kill("worker 2")
    await poll(lambda: not Path(f"/proc/{killed}").exists(), interval=0.01, timeout=PATIENCE)
    server.kill("store")
    await all_are_ready(server, without=before)
