"""The wait loops, on a clock that the test moves."""

from __future__ import annotations

import asyncio

import pytest

from pilothouse.client import wait
from pilothouse.client.clock import cancelled
from pilothouse.client.fake_clock import FakeClock


class Action:
    def __init__(self, clock: FakeClock, takes: float = 0.0) -> None:
        self.starts: list[float] = []
        self._clock = clock
        self._takes = takes

    async def __call__(self) -> None:
        self.starts.append(self._clock.now())
        if self._takes:
            await self._clock.sleep(self._takes)


async def run_for(clock: FakeClock, seconds: int, task: asyncio.Future[object]) -> None:
    for _ in range(seconds):
        await clock.wait_for_timers()
        clock.advance(1)
        for _ in range(5):
            await asyncio.sleep(0)
    await cancelled(task)


async def test_until_waits_a_period_after_each_end() -> None:
    clock = FakeClock()
    action = Action(clock, takes=2)
    await run_for(clock, 10, asyncio.ensure_future(wait.until(action, 3, clock=clock)))
    assert action.starts == [0, 5, 10]


async def test_non_sliding_until_waits_a_period_after_each_start() -> None:
    clock = FakeClock()
    action = Action(clock, takes=2)
    await run_for(clock, 9, asyncio.ensure_future(wait.non_sliding_until(action, 3, clock=clock)))
    assert action.starts == [0, 3, 6, 9]


async def test_an_action_that_raises_is_called_again(caplog: pytest.LogCaptureFixture) -> None:
    clock, calls = FakeClock(), []

    def action() -> None:
        calls.append(clock.now())
        raise RuntimeError("once more")

    await run_for(clock, 4, asyncio.ensure_future(wait.until(action, 2, clock=clock)))
    assert calls == [0, 2, 4]
    assert "once more" in caplog.text


async def test_jitter_makes_periods_longer_by_up_to_its_factor() -> None:
    clock, action = FakeClock(), None
    action = Action(clock)
    task = asyncio.ensure_future(wait.jitter_until(action, 10, factor=0.5, clock=clock))
    for _ in range(20):
        await clock.wait_for_timers()
        delay = clock.next_timer()
        assert delay is not None
        assert 10 <= delay <= 15
        clock.advance(delay)
    await cancelled(task)


@pytest.mark.parametrize(("immediate", "expected"), [(True, [0, 2, 4]), (False, [2, 4, 6])])
async def test_polling_ends_when_the_condition_holds(immediate: bool, expected: list[float]) -> None:
    clock = FakeClock()
    tried: list[float] = []

    def condition() -> bool:
        tried.append(clock.now())
        return len(tried) == 3

    polling = asyncio.ensure_future(wait.poll(condition, 2, immediate=immediate, clock=clock))
    while clock.now() < expected[-1]:
        await clock.wait_for_timers()
        clock.advance(2)
    await polling
    assert tried == expected


async def test_polling_gives_up_at_its_timeout() -> None:
    clock = FakeClock()
    polling = asyncio.ensure_future(wait.poll(lambda: False, 2, timeout=5, clock=clock))
    for _ in range(3):
        await clock.wait_for_timers()
        clock.advance(2)
    with pytest.raises(wait.WaitTimeout):
        await polling


async def test_what_a_condition_raises_goes_through() -> None:
    def condition() -> bool:
        raise LookupError

    with pytest.raises(LookupError):
        await wait.poll(condition, 1)


async def test_exponential_backoff_tries_as_often_as_it_has_steps() -> None:
    clock = FakeClock()
    tried: list[float] = []

    def never() -> bool:
        tried.append(clock.now())
        return False

    backoff = wait.Backoff(duration=1, factor=2, steps=4)
    trying = asyncio.ensure_future(wait.exponential_backoff(backoff, never, clock=clock))
    for _ in range(3):
        await clock.wait_for_timers()
        clock.advance(clock.next_timer() or 0)
    with pytest.raises(wait.WaitTimeout):
        await trying
    assert tried == [0, 1, 3, 7]


def test_waits_grow_to_their_cap_and_stay_there() -> None:
    delays = wait.Backoff(duration=1, factor=3, steps=10, cap=20).delays()
    assert [delays() for _ in range(6)] == [1, 3, 9, 20, 20, 20]
    delays = wait.Backoff(duration=1, factor=2, steps=2).delays()
    assert [delays() for _ in range(4)] == [1, 2, 4, 4]


def test_waits_start_again_after_a_quiet_time() -> None:
    clock = FakeClock()
    delays = wait.Backoff(duration=1, factor=2, steps=10).delays_with_reset(60, clock)
    assert [delays() for _ in range(3)] == [1, 2, 4]
    clock.advance(61)
    assert delays() == 1
