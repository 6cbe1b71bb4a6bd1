"""A delaying queue whose delay comes from a rate limiter. Call `forget` on success, or failures count for ever."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, TypeVar

from pilothouse.client.clock import REAL_CLOCK, Clock
from pilothouse.client.workqueue.delaying import DelayingQueue
from pilothouse.client.workqueue.rate_limiters import RateLimiter, default_controller_rate_limiter

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

T = TypeVar("T", bound=Hashable)


class RateLimitingQueue(DelayingQueue[T]):
    """A work queue that lets an item wait longer the more often it has failed. Call `forget` when it succeeds.

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
        """Adds the item when the rate limiter says it may run again."""
        self.add_after(item, self._rate_limiter.when(item))

    def forget(self, item: T) -> None:
        """Forgets the item's failures. It does not take it off the queue, and `done` must still be called."""
        self._rate_limiter.forget(item)

    def num_requeues(self, item: T) -> int:
        """Return how often an item was put back since it was last forgotten."""
        return self._rate_limiter.num_requeues(item)
