"""The parts that need no etcd: one revision for many callers, and the window of recent events."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.apiserver.storage.errors import Unavailable
from pilothouse.apiserver.storage.etcd.feed import RevisionReader
from pilothouse.apiserver.storage.interface import Entry, Event
from pilothouse.apiserver.storage.watching import EventWindow


class Server:
    """Answers a read with the revision at the time that it was begun, when it is let."""

    def __init__(self) -> None:
        self.revision = 1
        self.reads: list[asyncio.Future[int]] = []
        self._begun: list[int] = []

    async def read(self) -> int:
        self._begun.append(self.revision)
        self.reads.append(asyncio.get_running_loop().create_future())
        return await self.reads[-1]

    def answer(self, number: int) -> None:
        self.reads[number].set_result(self._begun[number])


async def _turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_those_who_ask_before_a_read_begins_share_it() -> None:
    server = Server()
    reader = RevisionReader(server.read)
    asking = [asyncio.ensure_future(reader.current()) for _ in range(10)]
    await _turns()
    server.answer(0)
    assert await asyncio.gather(*asking) == [1] * 10
    assert len(server.reads) == 1


async def test_nobody_gets_the_answer_of_a_read_that_began_before_they_asked() -> None:
    server = Server()
    reader = RevisionReader(server.read)
    early = []
    for _ in range(2):
        early.append(asyncio.ensure_future(reader.current()))
        await _turns()
    server.revision = 7  # a write returns
    late = [asyncio.ensure_future(reader.current()) for _ in range(5)]
    await _turns()
    assert len(server.reads) == 2
    server.answer(0)
    await _turns()
    server.answer(1)
    server.answer(2)
    assert await asyncio.gather(*early) == [1, 1]
    assert await asyncio.gather(*late) == [7] * 5


async def test_a_caller_that_gives_up_does_not_take_the_answer_from_others() -> None:
    server = Server()
    reader = RevisionReader(server.read)
    giving_up, staying = (asyncio.ensure_future(reader.current()) for _ in range(2))
    await _turns()
    giving_up.cancel()
    await _turns()
    server.answer(0)
    assert await staying == 1


async def test_a_failed_read_fails_those_who_share_it_and_nobody_after() -> None:
    server = Server()
    reader = RevisionReader(server.read)
    unlucky = [asyncio.ensure_future(reader.current()) for _ in range(3)]
    await _turns()
    server.reads[0].set_exception(Unavailable("gone"))
    assert [str(error) for error in await asyncio.gather(*unlucky, return_exceptions=True)] == ["gone"] * 3
    lucky = asyncio.ensure_future(reader.current())
    await _turns()
    server.answer(1)
    assert await lucky == 1


def _event(revision: int, name: int, size: int) -> Event:
    key = f"/{name}"
    return Event(revision, key, Entry(key, b"x" * size, revision, revision), None)


_batches = st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=4), max_size=30)


@given(sizes=_batches)
def test_a_window_has_every_event_behind_its_start_and_is_bounded(sizes: list[list[int]]) -> None:
    """Each batch is one revision of several events."""
    window = EventWindow(10, max_events=8, max_bytes=40)
    events: list[Event] = []
    for revision, batch in enumerate(sizes, start=11):
        new = [_event(revision, name, size) for name, size in enumerate(batch)]
        events += new
        window.extend(new)
        kept = window.after(window.start)
        assert kept == [event for event in events if event.revision > window.start]
        assert len(kept) <= 8
        assert sum(len(event.entry.value) for event in kept if event.entry) <= 40
        for after in range(window.start, revision + 1):
            assert window.after(after) == [event for event in events if event.revision > after]


def test_a_window_reaches_back_only_if_all_that_is_missing_fits() -> None:
    window = EventWindow(14, max_events=4)
    window.extend([_event(15, 0, 1), _event(16, 0, 1)])
    older = [_event(revision, 0, 1) for revision in (12, 13, 14, 15)]
    window.reach_back(11, older)
    assert window.start == 14
    window.reach_back(12, older[1:])
    assert (window.start, [event.revision for event in window.after(12)]) == (12, [13, 14, 15, 16])


def test_a_window_of_one_huge_event_forgets_it() -> None:
    window = EventWindow(1, max_bytes=10)
    window.extend([_event(2, 0, 11)])
    assert (window.start, window.after(2)) == (2, [])


@pytest.mark.parametrize("start", [0, 5])
def test_an_empty_window_covers_its_start(start: int) -> None:
    assert EventWindow(start).after(start) == []
