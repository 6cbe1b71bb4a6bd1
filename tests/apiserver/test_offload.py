"""Long work beside the loop: who takes turns, what a cancelled request leaves, and that collections come back."""

from __future__ import annotations

import asyncio
import gc
import threading
from unittest.mock import MagicMock

import pytest
from patience import PATIENCE

from pilothouse.apiserver import offload as subject
from pilothouse.apiserver.endpoints import apply, patch
from pilothouse.apiserver.fair_thread import FairThreads, Job
from pilothouse.apiserver.offload import WORTH_A_THREAD, NeedsOffload, Weight, is_offloaded, offload, offload_by_size
from pilothouse.machinery.checkpoints import checkpoint
from pilothouse.machinery.server_errors import TooManyRequests

HEAVY, LARGE = WORTH_A_THREAD + 1, 3 << 20


async def test_light_work_stays_where_it_is_and_heavy_work_leaves_the_loop() -> None:
    here = threading.get_ident()
    assert await offload_by_size(WORTH_A_THREAD, threading.get_ident) == here
    assert await offload_by_size(HEAVY, threading.get_ident) != here
    assert await Weight("a", 1).run(threading.get_ident) == here
    assert await Weight("a", HEAVY).run(threading.get_ident) != here


async def test_what_work_raises_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        await offload(lambda: 1 // 0)


async def test_work_that_needs_offloading_restarts_in_a_thread() -> None:
    begun = []

    def work() -> str:
        begun.append(is_offloaded())
        if not is_offloaded():
            raise NeedsOffload
        return "done"

    assert await Weight("a").run_or_restart(work) == "done"
    assert begun == [False, True]


async def test_what_is_of_ordinary_size_does_not_wait_for_what_is_large() -> None:
    go = threading.Event()
    large = asyncio.create_task(Weight("a", LARGE).run(go.wait, 30))
    await asyncio.sleep(0)
    assert await Weight("b", HEAVY).run(lambda: "served") == "served"
    assert not large.done()
    go.set()
    assert await large


def test_flows_take_turns_and_what_continues_goes_first() -> None:
    thread, done = FairThreads("turns", ()).of(1), threading.Event()
    held, begun = threading.Event(), threading.Event()
    order: list[str] = []

    def job(name: str, flow: str, *, continues: bool = False) -> Job:
        return Job(flow, 1, lambda: order.append(name), lambda *_: None, continues=continues)

    def hold() -> None:
        begun.set()
        held.wait(PATIENCE)

    thread.submit(Job("a", 1, hold, lambda *_: None))
    assert begun.wait(PATIENCE)
    for number in range(3):
        thread.submit(job(f"a{number}", "a"))
    thread.submit(job("a goes on", "a", continues=True))
    thread.submit(job("b", "b"))
    thread.submit(Job("c", 1, done.set, lambda *_: None))
    held.set()
    assert done.wait(PATIENCE)
    assert order == ["b", "a goes on", "a0", "a1", "a2"][: len(order)]
    assert order[0] == "b"


def test_large_work_pauses_while_small_work_is_there() -> None:
    threads, order = FairThreads("pauses", (10,)), list[str]()
    begun, small_is_there, done = threading.Event(), threading.Event(), threading.Event()

    def large() -> None:
        begun.set()
        small_is_there.wait(PATIENCE)
        while len(order) < 20:  # each checkpoint waits for the small work, and its next piece comes meanwhile
            checkpoint()
        order.append("large")

    def small() -> None:
        order.append("small")
        threads.of(1).submit(Job("b", 1, small, _ignored)) if len(order) < 20 else None

    threads.of(11).submit(Job("a", 11, large, lambda *_: done.set()))
    assert begun.wait(PATIENCE)
    threads.of(1).submit(Job("b", 1, small, _ignored))
    small_is_there.set()
    assert done.wait(PATIENCE)
    assert order == ["small"] * 20 + ["large"]


def test_large_work_goes_on_however_much_small_work_there_is() -> None:
    threads, done = FairThreads("goes-on", (10,)), threading.Event()

    def small() -> None:
        if not done.is_set():
            threads.of(1).submit(Job("b", 1, small, _ignored))

    def large() -> None:
        for _ in range(3):
            checkpoint()

    threads.of(1).submit(Job("b", 1, small, _ignored))
    threads.of(11).submit(Job("a", 11, large, lambda *_: done.set()))
    assert done.wait(PATIENCE)


async def test_work_of_a_cancelled_request_ends_at_its_next_checkpoint() -> None:
    begun = threading.Event()

    def work() -> None:
        begun.set()
        while True:
            checkpoint()

    task = asyncio.create_task(Weight("a", HEAVY).run(work))
    while not begun.is_set():  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await Weight("a", HEAVY).run(lambda: "served") == "served"


def _ignored(result: object, error: BaseException | None) -> None:
    pass


async def test_work_of_a_cancelled_request_that_has_begun_is_waited_for() -> None:
    begun, go, over = threading.Event(), threading.Event(), []

    def work() -> None:
        begun.set()
        go.wait(PATIENCE)
        over.append(True)

    task = asyncio.create_task(Weight("a", HEAVY).run(work))
    while not begun.is_set():  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    for _ in range(2):
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert over == [True]


async def test_work_of_a_cancelled_request_that_has_not_begun_never_begins() -> None:
    go = threading.Event()
    ran: list[str] = []
    first = asyncio.create_task(Weight("a", HEAVY).run(go.wait, 30))
    await asyncio.sleep(0)
    second = asyncio.create_task(Weight("a", HEAVY).run(ran.append, "second"))
    await asyncio.sleep(0)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    go.set()
    await first
    await offload(lambda: None)
    assert ran == []


async def test_a_flow_for_which_too_much_waits_is_turned_away_and_others_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    go = threading.Event()
    waiting = [asyncio.create_task(Weight("hostile", HEAVY).run(go.wait, 30)) for _ in range(3)]
    while Weight("hostile", HEAVY).thread.waiting_bytes("hostile") < 2 * HEAVY:  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    monkeypatch.setattr(subject, "_MOST_WAITING", HEAVY)
    with pytest.raises(TooManyRequests):
        await Weight("hostile", HEAVY).run(go.wait, 30)
    other = asyncio.create_task(Weight("other", HEAVY).run(lambda: "served"))
    go.set()
    assert await other == "served"
    await asyncio.gather(*waiting)


async def test_no_garbage_is_collected_while_a_large_object_is_in_work_and_then_it_is_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pilothouse.apiserver.offload._GRACE", 0.0)
    monkeypatch.setattr("pilothouse.apiserver.offload._LOOK_EVERY", 0.001)
    await _until_collected()
    assert await Weight("a", LARGE).run(gc.isenabled) is False
    await _until_collected()


async def test_memory_that_grows_meanwhile_is_looked_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pilothouse.apiserver.offload._GRACE", 0.0)
    monkeypatch.setattr("pilothouse.apiserver.offload._LOOK_EVERY", 0.001)
    monkeypatch.setattr("pilothouse.apiserver.offload._MOST_GROWTH", -1)
    await _until_collected()
    collected = threading.Event()

    def notice(phase: str, info: dict[str, int]) -> None:
        collected.set()

    gc.callbacks.append(notice)
    try:
        assert await Weight("a", LARGE).run(collected.wait, 10)
    finally:
        gc.callbacks.remove(notice)


async def _until_collected() -> None:
    """Returns when the collector is on, which it is soon after the last work."""
    async with asyncio.timeout(PATIENCE):
        while not gc.isenabled():  # noqa: ASYNC110
            await asyncio.sleep(0.001)


@pytest.mark.parametrize(
    ("mechanism", "read", "kept"),
    [(apply.ApplyMechanism, "_parse", "configuration"), (patch.PatchMechanism, "content_type_of", "patcher")],
)
async def test_the_body_of_one_patch_is_read_while_another_is(
    mechanism: type, read: str, kept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that the event loop waits for is held meanwhile."""
    begun, go = threading.Event(), threading.Event()

    def slowly(*_: object) -> str:
        if not begun.is_set():
            begun.set()
            go.wait(PATIENCE)
        return "application/json-patch+json"

    monkeypatch.setattr(f"{mechanism.__module__}.{read}", slowly)
    first, second = (mechanism(MagicMock(), MagicMock(), b"[]", MagicMock()) for _ in range(2))
    reading = asyncio.create_task(offload(lambda: getattr(first, kept)))
    while not begun.is_set():  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    assert getattr(second, kept)
    assert not reading.done()
    go.set()
    assert await reading
