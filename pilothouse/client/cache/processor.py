"""SharedProcessor: distribution of notifications to event handlers.

Each handler has its own queue and task, so a slow handler does not delay the others. Queues are unbounded: no
notification is dropped. `pending` reports the backlog, and a large backlog is logged. If a handler raises, the
notification is lost and the next one is delivered after one second.
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
OBJECTS_PER_TURN = 500  # per informer, before control returns to the event loop
_NOTIFICATIONS_PER_TURN = 2 * OBJECTS_PER_TURN  # keeps a listener from falling behind its informer


class ProcessorListener:
    """Queue and task of one handler; the registration returned by `add_event_handler`."""

    syncing: bool  # whether this handler takes part in the current resync

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
        self._initial = 0  # notifications of the initial list that are not handled yet
        self._upstream_synced = False
        self._synced = asyncio.Event()
        self._warn_at = BACKLOG_WARNING

    @property
    def pending(self) -> int:
        """Number of notifications waiting for the handler."""
        return len(self._pending)

    def has_synced(self) -> bool:
        """Report whether the informer has synced and the handler has processed the initial list."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        await self._synced.wait()

    def add(self, notification: Notification) -> None:
        if isinstance(notification, AddNotification) and notification.is_in_initial_list:
            self._initial += 1
        self._pending.append(notification)
        self._ready.set()
        if len(self._pending) >= self._warn_at:
            logger.warning("handler %r is slow: %d notifications pending", self.handler, len(self._pending))
            self._warn_at *= 2

    def upstream_has_synced(self) -> None:
        self._upstream_synced = True
        self._check_synced()

    def should_resync(self, now: float) -> bool:
        """Report whether the handler's resync is due; if so, schedule the next one."""
        if not self.resync_period or now < self._next_resync:
            return False
        self._next_resync = now + self.resync_period
        return True

    async def run(self) -> None:
        while True:
            for _ in range(min(len(self._pending), _NOTIFICATIONS_PER_TURN)):
                notification = self._pending.popleft()
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
            if self._pending:
                await yield_to_loop()
            else:
                self._ready.clear()
                await self._ready.wait()

    def _check_synced(self) -> None:
        if self._upstream_synced and self._initial == 0:
            self._synced.set()


class SharedProcessor:
    """Listeners of one informer."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.listeners: list[ProcessorListener] = []

    def distribute(self, notification: Notification, *, sync: bool = False) -> None:
        """Queue a notification for every handler; a resync only for handlers that take part in the resync."""
        for listener in self.listeners:
            if not sync or listener.syncing:
                listener.add(notification)

    def should_resync(self) -> bool:
        """Select the handlers whose resync is due; report whether there is any."""
        now = self._clock.now()
        for listener in self.listeners:
            listener.syncing = listener.should_resync(now)
        return any(listener.syncing for listener in self.listeners)
