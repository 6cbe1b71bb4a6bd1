"""DelayingQueue: a work queue with `add_after`. RateLimitingQueue: delays come from a rate limiter.

A waiting item has one due time. Adding the item again may make the item due earlier, never later.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Hashable
from typing import TYPE_CHECKING, Protocol, TypeVar

from pilothouse.client.clock import REAL_CLOCK, Clock, Timer
from pilothouse.client.flowcontrol import TokenBucket
from pilothouse.client.workqueue.queue import WorkQueue

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

T = TypeVar("T", bound=Hashable)


class DelayingQueue(WorkQueue[T]):
    _ready_at: dict[T, float]  # due time of each waiting item
    _waiting: list[tuple[float, int, T]]  # heap; an entry is outdated if its time differs from the item's _ready_at
    _timer: Timer | None  # fires when the first entry of the heap is due

    def __init__(self, name: str = "", *, registry: CollectorRegistry | None = None, clock: Clock = REAL_CLOCK) -> None:
        super().__init__(name, registry=registry, clock=clock)
        self._ready_at = {}
        self._waiting = []
        self._sequence = itertools.count()
        self._timer = None

    def is_busy(self, within: float) -> bool:
        """Report whether the queue has work now or `within` seconds."""
        return super().is_busy(within) or (
            bool(self._waiting) and self._waiting[0][0] <= self._clock.now() + within and not self.shutting_down
        )

    def add_after(self, item: T, seconds: float) -> None:
        """Add the item after `seconds`, or immediately if `seconds` ≤ 0. Ignored while shutting down."""
        if self.shutting_down:
            return
        if self._metrics is not None:
            self._metrics.retries += 1
        if seconds <= 0:
            self.add(item)
            return
        ready_at = self._clock.now() + seconds
        if ready_at < self._ready_at.get(item, float("inf")):
            self._ready_at[item] = ready_at
            heapq.heappush(self._waiting, (ready_at, next(self._sequence), item))
            if self._waiting[0][0] == ready_at:
                self._set_timer()

    @property
    def waiting(self) -> int:
        """Number of items waiting for their due time."""
        return len(self._ready_at)

    def shut_down(self) -> None:
        self._stop_waiting()
        super().shut_down()

    async def shut_down_with_drain(self) -> None:
        self._stop_waiting()
        await super().shut_down_with_drain()

    def _stop_waiting(self) -> None:
        """Drop items that are not due yet: a queue that shuts down accepts no items."""
        if self._timer is not None:
            self._timer.cancel()
        self._waiting.clear()
        self._ready_at.clear()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._waiting:
            self._timer = self._clock.call_later(self._waiting[0][0] - self._clock.now(), self._add_ready)

    def _add_ready(self) -> None:
        now = self._clock.now()
        while self._waiting and self._waiting[0][0] <= now:
            ready_at, _, item = heapq.heappop(self._waiting)
            if self._ready_at.get(item) == ready_at:
                del self._ready_at[item]
                self.add(item)
        self._set_timer()


class RateLimitingQueue(DelayingQueue[T]):
    """Work queue that delays an item longer after each failure. Call `forget` on success to reset the failures.

    >>> from pilothouse.client import RateLimitingQueue
    >>> queue: RateLimitingQueue[str] = RateLimitingQueue()
    >>> queue.add_rate_limited("a")
    >>> await queue.get(), queue.num_requeues("a")
    ('a', 1)
    """

    def __init__(
        self,
        name: str = "",
        *,
        rate_limiter: RateLimiter | None = None,
        registry: CollectorRegistry | None = None,
        clock: Clock = REAL_CLOCK,
    ) -> None:
        super().__init__(name, registry=registry, clock=clock)
        self._rate_limiter = default_controller_rate_limiter(clock) if rate_limiter is None else rate_limiter

    def add_rate_limited(self, item: T) -> None:
        """Add the item after the rate limiter's delay."""
        self.add_after(item, self._rate_limiter.when(item))

    def forget(self, item: T) -> None:
        """Reset the item's failures. Neither removes the item from the queue nor replaces `done`."""
        self._rate_limiter.forget(item)

    def num_requeues(self, item: T) -> int:
        """Return the number of failures since the last `forget`."""
        return self._rate_limiter.num_requeues(item)


class RateLimiter(Protocol):
    def when(self, item: Hashable) -> float:
        """Record a failure of the item; return the seconds to wait."""

    def forget(self, item: Hashable) -> None:
        """Reset the failures of the item."""

    def num_requeues(self, item: Hashable) -> int:
        """Return the number of recorded failures."""


class _Failures:
    def __init__(self) -> None:
        self._failures: dict[Hashable, int] = {}

    def forget(self, item: Hashable) -> None:
        self._failures.pop(item, None)

    def num_requeues(self, item: Hashable) -> int:
        return self._failures.get(item, 0)

    def _count(self, item: Hashable) -> int:
        count = self._failures[item] = self._failures.get(item, 0) + 1
        return count


class ItemExponentialFailureRateLimiter(_Failures):
    """base_delay × 2^failures, at most max_delay."""

    def __init__(self, base_delay: float, max_delay: float) -> None:
        super().__init__()
        self._base_delay = base_delay
        self._max_delay = max_delay

    def when(self, item: Hashable) -> float:
        exponent = min(self._count(item) - 1, 1000)  # 2.0**1024 overflows
        return min(self._base_delay * 2.0**exponent, self._max_delay)


class ItemFastSlowRateLimiter(_Failures):
    """fast_delay for the first attempts, slow_delay for the rest."""

    def __init__(self, fast_delay: float, slow_delay: float, max_fast_attempts: int) -> None:
        super().__init__()
        self._fast_delay = fast_delay
        self._slow_delay = slow_delay
        self._max_fast_attempts = max_fast_attempts

    def when(self, item: Hashable) -> float:
        return self._fast_delay if self._count(item) <= self._max_fast_attempts else self._slow_delay


class BucketRateLimiter:
    """One token bucket for all items; does not count failures."""

    def __init__(self, qps: float, burst: int, clock: Clock = REAL_CLOCK) -> None:
        self._bucket = TokenBucket(qps, burst, clock)

    def when(self, item: Hashable) -> float:
        return self._bucket.reserve()

    def forget(self, item: Hashable) -> None:
        return

    def num_requeues(self, item: Hashable) -> int:
        return 0


class MaxOfRateLimiter:
    """Longest delay of several limiters; each limiter records the failure."""

    def __init__(self, *limiters: RateLimiter) -> None:
        self._limiters = limiters

    def when(self, item: Hashable) -> float:
        return max((limiter.when(item) for limiter in self._limiters), default=0.0)

    def forget(self, item: Hashable) -> None:
        for limiter in self._limiters:
            limiter.forget(item)

    def num_requeues(self, item: Hashable) -> int:
        return max((limiter.num_requeues(item) for limiter in self._limiters), default=0)


class WithMaxWaitRateLimiter:
    """Delay of another limiter, limited to max_delay."""

    def __init__(self, limiter: RateLimiter, max_delay: float) -> None:
        self._limiter = limiter
        self._max_delay = max_delay
        self.forget = limiter.forget
        self.num_requeues = limiter.num_requeues

    def when(self, item: Hashable) -> float:
        return min(self._limiter.when(item), self._max_delay)


def default_controller_rate_limiter(clock: Clock = REAL_CLOCK) -> RateLimiter:
    """Per item 5 ms, doubling up to 1000 s; over all items 10 per second after a burst of 100."""
    return MaxOfRateLimiter(ItemExponentialFailureRateLimiter(0.005, 1000.0), BucketRateLimiter(10, 100, clock))
