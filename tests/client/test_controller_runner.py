"""The controller runner: when workers start, what a failure does, how it stops."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from api_server_fixture import ApiServer

from pilothouse.client.cache.informer_factory import SharedInformerFactory
from pilothouse.client.cache.keys import DeletedFinalStateUnknown
from pilothouse.client.controller import Controller, Requeue, enqueue_keys, enqueue_mapped, enqueue_owner
from pilothouse.client.fake_clock import FakeClock
from pilothouse.client.rest.client import Client
from pilothouse.client.workqueue.queue import WorkQueue
from pilothouse.machinery.names import GroupVersionResource


class Gate:
    """A cache that syncs when the test says so."""

    def __init__(self) -> None:
        self.event = asyncio.Event()

    async def wait_synced(self) -> None:
        await self.event.wait()


@asynccontextmanager
async def running(controller: Controller[str]) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.ensure_future(controller.run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait({task})


async def test_no_worker_starts_before_every_cache_has_synced() -> None:
    gates = (Gate(), Gate())
    done: asyncio.Queue[str] = asyncio.Queue()
    controller = Controller("", done.put, caches=gates)
    controller.queue.add("a")
    async with running(controller):
        gates[0].event.set()
        for _ in range(5):
            await asyncio.sleep(0)
        assert done.empty()
        gates[1].event.set()
        assert await done.get() == "a"


async def test_a_controller_stopped_before_its_caches_synced_ends() -> None:
    done: asyncio.Queue[str] = asyncio.Queue()
    controller = Controller("", done.put, caches=(Gate(),))
    task = asyncio.ensure_future(controller.run())
    controller.stop()
    await task


async def test_a_failed_key_is_tried_again_later_each_time_and_success_forgets_it() -> None:
    clock = FakeClock()
    calls: asyncio.Queue[str] = asyncio.Queue()
    failures = 3

    async def reconcile(key: str) -> None:
        nonlocal failures
        calls.put_nowait(key)
        if failures:
            failures -= 1
            raise RuntimeError("not yet")

    controller = Controller("", reconcile, clock=clock)
    controller.queue.add("a")
    async with running(controller):
        for delay in (0.005, 0.01, 0.02):
            await calls.get()
            await clock.wait_for_timers()
            assert clock.next_timer() == pytest.approx(delay)
            clock.advance(delay)
        await calls.get()
        controller.queue.add("b")
        await calls.get()
        assert controller.queue.num_requeues("a") == 0


async def test_a_key_is_given_up_after_the_last_retry() -> None:
    clock = FakeClock()
    calls: asyncio.Queue[str] = asyncio.Queue()

    async def reconcile(key: str) -> None:
        calls.put_nowait(key)
        raise RuntimeError("never")

    controller = Controller("", reconcile, clock=clock, max_retries=1)
    controller.queue.add("a")
    async with running(controller):
        await calls.get()
        await clock.wait_for_timers()
        clock.advance(1)
        await calls.get()
        controller.queue.add("b")
        await calls.get()
        assert controller.queue.num_requeues("a") == 0
        assert controller.queue.waiting <= 1


async def test_a_reconcile_may_ask_to_be_called_again() -> None:
    clock = FakeClock()
    calls: asyncio.Queue[str] = asyncio.Queue()

    async def reconcile(key: str) -> Requeue:
        calls.put_nowait(key)
        return Requeue(after=60)

    controller = Controller("", reconcile, clock=clock)
    controller.queue.add("a")
    async with running(controller):
        await calls.get()
        await clock.wait_for_timers()
        assert clock.next_timer() == 60
        clock.advance(60)
        await calls.get()


async def test_workers_run_side_by_side_but_never_on_one_key() -> None:
    started: asyncio.Queue[str] = asyncio.Queue()
    gate = asyncio.Event()

    async def reconcile(key: str) -> None:
        started.put_nowait(key)
        await gate.wait()

    controller = Controller("", reconcile, workers=3)
    for key in "aab":
        controller.queue.add(key)
    async with running(controller):
        assert {await started.get(), await started.get()} == {"a", "b"}
        controller.queue.add("a")
        await asyncio.sleep(0)
        assert started.empty()
        gate.set()
        assert await started.get() == "a"


async def test_stopping_lets_everything_queued_finish() -> None:
    done: list[str] = []

    async def reconcile(key: str) -> None:
        await asyncio.sleep(0)
        done.append(key)

    controller = Controller("", reconcile)
    for key in "abc":
        controller.queue.add(key)
    task = asyncio.ensure_future(controller.run())
    controller.stop()
    controller.queue.add("d")
    await task
    controller.queue.add("late")
    assert done == ["a", "b", "c", "d"]


async def test_stopping_gives_up_on_a_reconcile_that_does_not_end() -> None:
    clock = FakeClock()
    started = asyncio.Event()

    async def reconcile(key: str) -> None:
        started.set()
        await asyncio.Event().wait()

    controller = Controller("", reconcile, clock=clock, stop_timeout=5)
    controller.queue.add("a")
    task = asyncio.ensure_future(controller.run())
    await started.wait()
    controller.stop()
    await clock.wait_for_timers()
    clock.advance(5)
    await task


async def test_cancelling_ends_running_reconciles() -> None:
    ended: list[str] = []
    started = asyncio.Event()

    async def reconcile(key: str) -> None:
        try:
            started.set()
            await asyncio.Event().wait()
        finally:
            ended.append(key)

    controller = Controller("", reconcile)
    controller.queue.add("a")
    async with running(controller):
        await started.wait()
    assert ended == ["a"]
    assert controller.queue.shutting_down


async def test_keys_come_from_an_informer_and_are_read_back_from_its_cache(server: ApiServer, client: Client) -> None:
    resource = GroupVersionResource("", "v1", "configmaps")
    await server.put("a")
    factory = SharedInformerFactory(client)
    informer, lister = factory.for_resource(resource), factory.lister(resource)
    seen: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def reconcile(key: str) -> None:
        found = informer.indexer.get_by_key(key)
        await seen.put({"key": key, "found": found is not None})

    controller = Controller("", reconcile, caches=(informer,))
    informer.add_event_handler(enqueue_keys(controller.queue))
    async with factory, running(controller):
        assert await seen.get() == {"key": "default/a", "found": True}
        assert len(lister.list()) == 1
        await server.remove("a")
        assert await seen.get() == {"key": "default/a", "found": False}


async def test_handlers_put_mapped_keys_and_owners_on_a_queue() -> None:
    queue: WorkQueue[str] = WorkQueue()

    def obj(owner: str, *, controller: bool = True) -> dict[str, Any]:
        reference = {"kind": "Foo", "name": owner, "controller": controller}
        return {"metadata": {"namespace": "n", "name": "x", "ownerReferences": [reference]}}

    handler = enqueue_owner(queue, "Foo")
    handler.on_add(obj("one", controller=False), False)
    handler.on_update(obj("two"), obj("three"))
    handler.on_delete(DeletedFinalStateUnknown("n/x", obj("four")))
    handler.on_delete(DeletedFinalStateUnknown("n/x", None))
    enqueue_owner(queue, "Bar").on_add(obj("five"), False)
    enqueue_mapped(queue, lambda found: [found["metadata"]["name"]]).on_add(obj("six"), False)
    keys = [await queue.get() for _ in range(len(queue))]
    assert keys == ["n/two", "n/three", "n/four", "x"]
