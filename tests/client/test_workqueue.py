"""The work queue's promises, each as a sentence, and a model that checks them over random histories."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from pilothouse.client.workqueue.queue import ShutDown, WorkQueue


async def test_an_item_added_twice_is_delivered_once() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    queue.add("a")
    assert await queue.get() == "a"
    assert len(queue) == 0


async def test_items_are_delivered_oldest_first() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for item in "cab":
        queue.add(item)
    assert [await queue.get() for _ in range(3)] == ["c", "a", "b"]


async def test_an_add_during_processing_runs_exactly_once_more_and_only_after_done() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    item = await queue.get()
    queue.add("a")
    queue.add("a")
    assert len(queue) == 0
    queue.done(item)
    assert await queue.get() == "a"
    queue.done("a")
    assert len(queue) == 0


async def test_a_waiting_worker_is_woken_by_an_add() -> None:
    queue: WorkQueue[str] = WorkQueue()
    worker = asyncio.ensure_future(queue.get())
    await asyncio.sleep(0)
    queue.add("a")
    assert await worker == "a"


async def test_a_worker_cancelled_after_its_wake_up_passes_it_on() -> None:
    queue: WorkQueue[str] = WorkQueue()
    first, second = asyncio.ensure_future(queue.get()), asyncio.ensure_future(queue.get())
    await asyncio.sleep(0)
    queue.add("a")
    first.cancel()
    assert await second == "a"


async def test_a_worker_cancelled_while_it_waits_leaves_no_trace() -> None:
    queue: WorkQueue[str] = WorkQueue()
    first = asyncio.ensure_future(queue.get())
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    queue.add("a")
    assert await queue.get() == "a"


async def test_shutting_down_delivers_what_is_queued_and_then_ends_every_worker() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    queue.shut_down()
    queue.add("b")
    assert await queue.get() == "a"
    with pytest.raises(ShutDown):
        await queue.get()


async def test_shutting_down_wakes_workers_that_wait() -> None:
    queue: WorkQueue[str] = WorkQueue()
    workers = [asyncio.ensure_future(queue.get()) for _ in range(3)]
    await asyncio.sleep(0)
    queue.shut_down()
    results = await asyncio.gather(*workers, return_exceptions=True)
    assert all(isinstance(result, ShutDown) for result in results)


async def test_a_drain_ends_only_when_every_item_was_given_back() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    queue.add("b")
    await queue.get()
    queue.add("a")  # runs once more, even though the queue drains
    drain = asyncio.ensure_future(queue.shut_down_with_drain())
    for item in ("a", "b", "a"):
        await asyncio.sleep(0)
        assert not drain.done()
        queue.done(item)
        if len(queue):
            await queue.get()
    await drain


async def test_a_shutdown_ends_a_drain_that_waits_for_a_stuck_worker() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    await queue.get()
    drain = asyncio.ensure_future(queue.shut_down_with_drain())
    await asyncio.sleep(0)
    assert not drain.done()
    queue.shut_down()
    await drain


async def test_many_workers_never_hold_one_item_at_the_same_time() -> None:
    queue: WorkQueue[int] = WorkQueue()
    held: set[int] = set()
    runs = 0

    async def work() -> None:
        nonlocal runs
        while True:
            try:
                item = await queue.get()
            except ShutDown:
                return
            assert item not in held
            held.add(item)
            await asyncio.sleep(0)
            held.remove(item)
            runs += 1
            queue.done(item)

    workers = [asyncio.ensure_future(work()) for _ in range(8)]
    for round_ in range(50):
        for item in range(5):
            queue.add(item)
        if round_ % 3 == 0:
            await asyncio.sleep(0)
    await queue.shut_down_with_drain()
    await asyncio.gather(*workers)
    assert runs >= 5


class QueueModel(RuleBasedStateMachine):
    """An add that has not been followed by a delivery is owed one; nothing is delivered that is not owed."""

    items = st.integers(0, 4)

    def __init__(self) -> None:
        super().__init__()
        self.queue: WorkQueue[int] = WorkQueue()
        self.owed: set[int] = set()
        self.held: set[int] = set()

    def deliver(self) -> int:
        coroutine = self.queue.get()
        with pytest.raises(StopIteration) as delivered:
            coroutine.send(None)
        item: int = delivered.value.value
        return item

    @rule(item=items)
    def add(self, item: int) -> None:
        self.queue.add(item)
        self.owed.add(item)

    @precondition(lambda self: self.owed - self.held)
    @rule()
    def get(self) -> None:
        item = self.deliver()
        assert item in self.owed
        assert item not in self.held
        self.owed.remove(item)
        self.held.add(item)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        item = data.draw(st.sampled_from(sorted(self.held)))
        self.queue.done(item)
        self.held.remove(item)

    @rule(item=items)
    def done_without_get_changes_nothing(self, item: int) -> None:
        if item not in self.held:
            self.queue.done(item)

    @invariant()
    def only_what_is_owed_and_not_held_waits(self) -> None:
        assert len(self.queue) == len(self.owed - self.held)


TestQueueModel = QueueModel.TestCase
TestQueueModel.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
