"""Loops: until cancelled, until a condition holds, with backoff and jitter.

Every loop ends when its task is cancelled. `until`, `non_sliding_until` and `jitter_until` log errors of the action and
continue; other loops propagate errors.
"""

from __future__ import annotations

import inspect
import logging
import math
import random
from collections.abc import Awaitable, Callable
from typing import NoReturn, TypeAlias

from pilothouse.client.clock import REAL_CLOCK, Clock
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.failed_attempts import log_failed_attempt

logger = logging.getLogger(__name__)

Action: TypeAlias = Callable[[], Awaitable[object] | object]
Condition: TypeAlias = Callable[[], Awaitable[bool] | bool]
DelayFunc: TypeAlias = Callable[[], float]


class WaitTimeout(TimeoutError):
    """The condition did not hold within the timeout or the number of steps."""


def jitter(seconds: float, factor: float) -> float:
    """Return a random duration between `seconds` and `seconds × (1 + factor)`; a factor ≤ 0 counts as 1."""
    return seconds + random.random() * (factor if factor > 0 else 1.0) * seconds


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential backoff: each delay is `factor` times the previous, at most `cap`, plus up to `jitter` of itself.

    Delays stop growing after `steps` steps.
    """

    duration: float
    factor: float = 0.0
    jitter: float = 0.0
    steps: int = 0
    cap: float = math.inf

    def delays(self) -> DelayFunc:
        """Return a function that returns the next delay on each call."""
        steps, duration = self.steps, self.duration

        def next_delay() -> float:
            nonlocal steps, duration
            current = duration
            if steps > 0:
                steps -= 1
                if self.factor:
                    duration *= self.factor
                if duration > self.cap:
                    duration, steps = self.cap, 0
            return jitter(current, self.jitter) if self.jitter > 0 else current

        return next_delay

    def delays_with_reset(self, reset_after: float, clock: Clock = REAL_CLOCK) -> DelayFunc:
        """As `delays`, but restart after `reset_after` seconds without a call."""
        delays, last = self.delays(), clock.now()

        def next_delay() -> float:
            nonlocal delays, last
            if clock.now() - last > reset_after:
                delays = self.delays()
            last = clock.now()
            return delays()

        return next_delay


async def until(action: Action, period: float, *, clock: Clock = REAL_CLOCK) -> NoReturn:
    """Call the action forever, with `period` seconds between the end of one call and the start of the next."""
    await jitter_until(action, period, factor=0.0, clock=clock)


async def non_sliding_until(action: Action, period: float, *, clock: Clock = REAL_CLOCK) -> NoReturn:
    """Call the action forever, with `period` seconds between starts; immediately if a call took longer."""
    await jitter_until(action, period, factor=0.0, sliding=False, clock=clock)


async def jitter_until(
    action: Action, period: float, *, factor: float, sliding: bool = True, clock: Clock = REAL_CLOCK
) -> NoReturn:
    """As `until`, with each period extended randomly by up to `factor` times the period."""
    while True:
        started = clock.now()
        delay = jitter(period, factor) if factor > 0 else period
        try:
            await _call(action)
        except Exception as error:
            log_failed_attempt(logger, error, "repeated action failed")
        await clock.sleep(delay if sliding else max(0.0, started + delay - clock.now()))


async def poll(
    condition: Condition,
    interval: float,
    *,
    timeout: float = math.inf,
    immediate: bool = True,
    clock: Clock = REAL_CLOCK,
) -> None:
    """Return when the condition holds; check it every `interval` seconds. Raises WaitTimeout."""
    deadline = clock.now() + timeout
    if immediate and await _call(condition):
        return
    while clock.now() < deadline:
        await clock.sleep(min(interval, deadline - clock.now()))
        if clock.now() < deadline and await _call(condition):
            return
    raise WaitTimeout("timed out waiting for the condition")


async def exponential_backoff(backoff: Backoff, condition: Condition, *, clock: Clock = REAL_CLOCK) -> None:
    """Check the condition up to `backoff.steps` times with growing delays. Raises WaitTimeout if it never held."""
    next_delay = backoff.delays()
    for step in range(backoff.steps):
        if step:
            await clock.sleep(next_delay())
        if await _call(condition):
            return
    raise WaitTimeout("timed out waiting for the condition")


async def _call(function: Action) -> object:
    result = function()
    return await result if inspect.isawaitable(result) else result
