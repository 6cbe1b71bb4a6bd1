"""WorkQueue: each item is processed by one worker at a time, and no add is lost.

An item added during processing is delivered exactly once more:

    add(a) add(a)                       → a is delivered once
    get() → a; add(a) add(a); done(a)   → a is delivered once more
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Hashable
from typing import TYPE_CHECKING, Generic, TypeVar

from pilothouse.client.clock import REAL_CLOCK, Clock
from pilothouse.client.idleness import register_worker
from pilothouse.client.workqueue.metrics import QueueMetrics, metrics_for
from pilothouse.machinery.event_loop import resolve
from pilothouse.machinery.status_error import PilothouseError

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

T = TypeVar("T", bound=Hashable)


class ShutDown(PilothouseError):
    """The queue is shutting down and empty.

    >>> from pilothouse.client import WorkQueue
    >>> from pilothouse.errors import ShutDown
    >>> queue: WorkQueue[str] = WorkQueue()
    >>> queue.shut_down()
    >>> try:
    ...     await queue.get()
    ... except ShutDown:
    ...     print("no more work")
    no more work
    """


class WorkQueue(Generic[T]):
    """Fair (FIFO), deduplicating queue for many producers and workers of one event loop.

    A named queue reports workqueue_* metrics to `registry` (default: prometheus_client's registry).

    >>> from pilothouse.client import WorkQueue
    >>> queue: WorkQueue[str] = WorkQueue()
    >>> queue.add("a"); queue.add("a"); queue.add("b")
    >>> await queue.get(), await queue.get(), len(queue)
    ('a', 'b', 0)
    """

    _order: deque[T]  # waiting, oldest first; every item is in _dirty and not in _processing
    _dirty: set[T]  # needs processing
    _processing: set[T]  # being processed; may also be dirty
    _getters: deque[asyncio.Future[None]]  # idle workers; each is woken for one item
    _drained: asyncio.Future[None] | None  # resolved when a draining queue is empty

    def __init__(self, name: str = "", *, registry: CollectorRegistry | None = None, clock: Clock = REAL_CLOCK) -> None:
        self.name = name
        self._clock = clock
        self._metrics: QueueMetrics | None = metrics_for(name, registry, clock)
        self._order = deque()
        self._dirty = set()
        self._processing = set()
        self._getters = deque()
        self._drained = None
        self._shutting_down = False
        register_worker(self)

    def is_busy(self, within: float) -> bool:
        """Report whether the queue has work."""
        return bool(self._dirty or self._processing) and not self._shutting_down

    def add(self, item: T) -> None:
        """Mark the item as needing processing. Ignored while shutting down."""
        if self._shutting_down or item in self._dirty:
            return
        if self._metrics is not None:
            self._metrics.added(item)
        self._dirty.add(item)
        if item not in self._processing:
            self._order.append(item)
            if self._getters:
                self._wake_one()

    async def get(self) -> T:
        """Return the next item; the caller must call `done` afterwards. Raises ShutDown after the last item."""
        while not self._order:
            if self._shutting_down:
                raise ShutDown(self.name)
            await self._wait_for_item()
        item = self._order.popleft()
        self._processing.add(item)
        self._dirty.discard(item)
        if self._metrics is not None:
            self._metrics.got(item)
        return item

    def done(self, item: T) -> None:
        """Mark processing as finished. An item added meanwhile is queued again."""
        if item not in self._processing:
            return
        if self._metrics is not None:
            self._metrics.done(item)
        self._processing.remove(item)
        if item in self._dirty:
            self._order.append(item)
            self._wake_one()
        else:
            if self._drained is not None and not self._order and not self._processing:
                resolve(self._drained)

    def __len__(self) -> int:
        """Number of waiting items, without items being processed."""
        return len(self._order)

    @property
    def shutting_down(self) -> bool:
        """Whether the queue accepts no more items."""
        return self._shutting_down

    def shut_down(self) -> None:
        """Stop accepting items. Workers receive the queued items, then ShutDown. Ends a pending drain."""
        self._shutting_down = True
        self._wake_all()
        if self._drained is not None:
            resolve(self._drained)

    async def shut_down_with_drain(self) -> None:
        """Stop accepting items; return when every item was delivered and `done` was called for it."""
        self._shutting_down = True
        self._wake_all()
        if self._order or self._processing:
            if self._drained is None:
                self._drained = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._drained)

    async def _wait_for_item(self) -> None:
        getter = asyncio.get_running_loop().create_future()
        self._getters.append(getter)
        try:
            await getter
        except asyncio.CancelledError:
            if getter in self._getters:
                self._getters.remove(getter)
            elif self._order:
                self._wake_one()  # pass the wake-up on to another worker
            raise

    def _wake_one(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return

    def _wake_all(self) -> None:
        while self._getters:
            self._wake_one()
