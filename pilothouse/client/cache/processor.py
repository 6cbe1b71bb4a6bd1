"""Relays notifications to handlers: each has its own queue and task, so that a slow one delays nobody else.

The queues are unbounded: a notification is never dropped. Their lengths can be watched (`pending`), and a handler
that falls far behind is logged. A handler that raises loses that one notification and gets the next a second later.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque

from pilothouse.client.cache.handlers import AddNotification, Notification, ResourceEventHandler
from pilothouse.client.clock import Clock
from pilothouse.machinery.event_loop import yield_to_loop

logger = logging.getLogger(__name__)

BACKLOG_WARNING = 10_000
CRASH_DELAY = 1.0
OBJECTS_PER_TURN = 500  # of an informer; then the event loop gets its turn
_NOTIFICATIONS_PER_TURN = 2 * OBJECTS_PER_TURN  # so that a listener does not fall behind its informer


class ProcessorListener:
    """One handler of one informer; also the registration that `add_event_handler` answers."""

    syncing: bool  # whether resync notifications go to this handler at the moment

    def __init__(self, handler: ResourceEventHandler, clock: Clock, *, requested: float, resync_period: float) -> None:
        self.handler = handler
        self.requested_resync_period = requested
        self.resync_period = resync_period
        self.syncing = True
        self.task: asyncio.Task[None] | None = None
        self._clock = clock
        self._next_resync = clock.now() + resync_period
        self._pending: deque[Notification] = deque()
        self._ready = asyncio.Event()
        self._initial = 0  # how many notifications of the first list have not been handled
        self._upstream_synced = False
        self._synced = asyncio.Event()
        self._warn_at = BACKLOG_WARNING

    @property
    def pending(self) -> int:
        """How many notifications wait for the handler."""
        return len(self._pending)

    def has_synced(self) -> bool:
        """Whether the informer has synced and the handler has handled everything of the first list."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        await self._synced.wait()

    def add(self, notification: Notification) -> None:
        if isinstance(notification, AddNotification) and notification.is_in_initial_list:
            self._initial += 1
        self._pending.append(notification)
        self._ready.set()
        if len(self._pending) >= self._warn_at:
            logger.warning("%d notifications wait for handler %r", len(self._pending), self.handler)
            self._warn_at *= 2

    def upstream_has_synced(self) -> None:
        self._upstream_synced = True
        self._check_synced()

    def should_resync(self, now: float) -> bool:
        """Whether the handler's resync is due; if so, sets when the next one is."""
        if not self.resync_period or now < self._next_resync:
            return False
        self._next_resync = now + self.resync_period
        return True

    async def run(self) -> None:
        while True:
            for _ in range(min(len(self._pending), _NOTIFICATIONS_PER_TURN)):
                await self._deliver(self._pending.popleft())
            if self._pending:
                await yield_to_loop()
            else:
                self._ready.clear()
                await self._ready.wait()

    async def _deliver(self, notification: Notification) -> None:
        try:
            result = notification.deliver(self.handler)
            if result is not None:
                await result
        except Exception:
            logger.exception("handler %r failed on %s", self.handler, type(notification).__name__)
            await self._clock.sleep(CRASH_DELAY)
        if isinstance(notification, AddNotification) and notification.is_in_initial_list:
            self._initial -= 1
            self._check_synced()

    def _check_synced(self) -> None:
        if self._upstream_synced and self._initial == 0:
            self._synced.set()


class SharedProcessor:
    """The handlers of one informer."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.listeners: list[ProcessorListener] = []

    def distribute(self, notification: Notification, *, sync: bool = False) -> None:
        """Queues a notification for every handler; a resync only for those whose resync it is."""
        for listener in self.listeners:
            if not sync or listener.syncing:
                listener.add(notification)

    def should_resync(self) -> bool:
        """Decides for each handler whether it takes part in the resync that is due now, if any does."""
        now = self._clock.now()
        for listener in self.listeners:
            listener.syncing = listener.should_resync(now)
        return any(listener.syncing for listener in self.listeners)
