"""A queue that hands each item to one worker at a time and never forgets an add.

One item is never worked on by two workers at once; an add during processing runs exactly once more:

    add(a) add(a)                       → a is delivered once
    get() → a; add(a) add(a); done(a)   → a is delivered once more
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Hashable
from typing import TYPE_CHECKING, Generic, TypeVar

from pilothouse.client.clock import REAL_CLOCK, Clock, resolve
from pilothouse.client.idleness import register_worker
from pilothouse.client.workqueue.metrics import QueueMetrics, metrics_for
from pilothouse.machinery.status_error import PilothouseError

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

T = TypeVar("T", bound=Hashable)


class ShutDown(PilothouseError):
    """The queue is shutting down and has nothing left to hand out.

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
    """Fair (oldest first), deduplicating, for many producers and many workers of one event loop.

    A named queue reports workqueue_* metrics to `registry`, or to prometheus_client's default one.

    >>> from pilothouse.client import WorkQueue
    >>> queue: WorkQueue[str] = WorkQueue()
    >>> queue.add("a"); queue.add("a"); queue.add("b")
    >>> await queue.get(), await queue.get(), len(queue)
    ('a', 'b', 0)
    """

    _order: deque[T]  # waiting, oldest first; every item here is in _dirty and not in _processing
    _dirty: set[T]  # needs work
    _processing: set[T]  # is being worked on; may also be dirty
    _getters: deque[asyncio.Future[None]]  # workers that found nothing; each is woken for one item
    _drained: asyncio.Future[None] | None  # is resolved when a draining queue has become empty

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
        """Whether there is work to be done."""
        return bool(self._dirty or self._processing) and not self._shutting_down

    def add(self, item: T) -> None:
        """Marks the item as needing work. Ignored while shutting down."""
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
        """The next item, which the caller must give back with `done`. Raises ShutDown when there will be none."""
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
        """The worker has finished with the item. If it was added meanwhile it is queued again."""
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
        """How many items wait; those being worked on do not count."""
        return len(self._order)

    @property
    def shutting_down(self) -> bool:
        """Return whether no more items are taken."""
        return self._shutting_down

    def shut_down(self) -> None:
        """Takes no more items. Workers get what is queued, then ShutDown. Ends a drain that waits."""
        self._shutting_down = True
        self._wake_all()
        if self._drained is not None:
            resolve(self._drained)

    async def shut_down_with_drain(self) -> None:
        """Takes no more items and returns when every item has been delivered and given back with `done`."""
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
                self._wake_one()  # the wake-up meant for us belongs to another worker now
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
