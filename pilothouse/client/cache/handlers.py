"""Event handlers of an informer, and SharedProcessor, which distributes notifications.

Handlers are synchronous or asynchronous callbacks, called one at a time. Each handler has its own queue and task, so a
slow handler does not delay other handlers. Queues are unbounded: no notification is dropped. `pending` reports the
backlog, and a large backlog is logged. If a handler raises, the notification is lost, and the next notification is
delivered after one second.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias

from pilothouse.client.cache.keys import DeletedFinalStateUnknown, decoded, last_known_state
from pilothouse.client.clock import Clock
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.event_loop import yield_to_loop
from pilothouse.machinery.failed_attempts import log_failed_attempt
from pilothouse.machinery.objects import Json

MaybeAwaitable: TypeAlias = Awaitable[None] | None
Deleted: TypeAlias = Json | DeletedFinalStateUnknown


class ResourceEventHandler(Protocol):
    """Receiver of notifications. Objects belong to the cache: copy before modifying.

    >>> from pilothouse.client import ResourceEventHandler, ResourceEventHandlerFuncs
    >>> handler: ResourceEventHandler = ResourceEventHandlerFuncs(add=print)
    >>> handler.on_add({"metadata": {"name": "a"}}, True)
    {'metadata': {'name': 'a'}}
    """

    def on_add(self, obj: Json, is_in_initial_list: bool) -> MaybeAwaitable:
        """Handle an object that was not in the cache."""

    def on_update(self, old: Json, new: Json) -> MaybeAwaitable:
        """Handle a changed object, or an unchanged object during a resync."""

    def on_delete(self, obj: Deleted) -> MaybeAwaitable:
        """Handle a deleted object. The state may be outdated."""


@dataclass(frozen=True, slots=True)
class ResourceEventHandlerFuncs:
    """Handler built from optional functions. Events without a function are ignored.

    >>> from pilothouse.client import ResourceEventHandlerFuncs, name_of
    >>> handler = ResourceEventHandlerFuncs(delete=lambda obj: print("gone:", name_of(obj)))
    >>> handler.on_delete({"metadata": {"name": "a"}})
    gone: a
    """

    add: Callable[[Json], MaybeAwaitable] | None = None
    update: Callable[[Json, Json], MaybeAwaitable] | None = None
    delete: Callable[[Deleted], MaybeAwaitable] | None = None

    def on_add(self, obj: Json, is_in_initial_list: bool) -> MaybeAwaitable:
        """Call `add` if set."""
        return self.add(obj) if self.add else None

    def on_update(self, old: Json, new: Json) -> MaybeAwaitable:
        """Call `update` if set."""
        return self.update(old, new) if self.update else None

    def on_delete(self, obj: Deleted) -> MaybeAwaitable:
        """Call `delete` if set."""
        return self.delete(obj) if self.delete else None


@dataclass(frozen=True, slots=True)
class FilteringResourceEventHandler:
    """Forwards events of objects that satisfy a predicate.

    An object that starts to satisfy the predicate is forwarded as added; an object that ceases to, as deleted.

    >>> from pilothouse.client import FilteringResourceEventHandler, ResourceEventHandlerFuncs, name_of
    >>> mine = FilteringResourceEventHandler(lambda obj: name_of(obj) == "a", ResourceEventHandlerFuncs(add=print))
    >>> mine.on_add({"metadata": {"name": "b"}}, False)
    >>> mine.on_add({"metadata": {"name": "a"}}, False)
    {'metadata': {'name': 'a'}}
    """

    passes: Callable[[Json], bool]
    handler: ResourceEventHandler

    def on_add(self, obj: Json, is_in_initial_list: bool) -> MaybeAwaitable:
        """Forward if the object satisfies the predicate."""
        return self.handler.on_add(obj, is_in_initial_list) if self.passes(obj) else None

    def on_update(self, old: Json, new: Json) -> MaybeAwaitable:
        """Forward as update, add or delete, by the predicate on the old and on the new state."""
        before, after = self.passes(old), self.passes(new)
        if before and after:
            return self.handler.on_update(old, new)
        if after:
            return self.handler.on_add(new, False)
        return self.handler.on_delete(old) if before else None

    def on_delete(self, obj: Deleted) -> MaybeAwaitable:
        """Forward if the last known state satisfied the predicate."""
        state = last_known_state(obj)
        return self.handler.on_delete(obj) if state is not None and self.passes(state) else None


@dataclass(slots=True)
class AddNotification:
    obj: Json | bytes
    is_in_initial_list: bool

    def deliver(self, handler: ResourceEventHandler) -> MaybeAwaitable:
        self.obj = decoded(self.obj)
        return handler.on_add(self.obj, self.is_in_initial_list)


@dataclass(slots=True)
class UpdateNotification:
    old: Json
    new: Json | bytes

    def deliver(self, handler: ResourceEventHandler) -> MaybeAwaitable:
        self.new = decoded(self.new)
        return handler.on_update(self.old, self.new)


@dataclass(slots=True)
class DeleteNotification:
    obj: Deleted

    def deliver(self, handler: ResourceEventHandler) -> MaybeAwaitable:
        return handler.on_delete(self.obj)


Notification: TypeAlias = AddNotification | UpdateNotification | DeleteNotification


logger = logging.getLogger(__name__)

BACKLOG_WARNING = 10_000
CRASH_DELAY = 1.0
OBJECTS_PER_TURN = 500  # per informer, before control returns to the event loop
_NOTIFICATIONS_PER_TURN = 2 * OBJECTS_PER_TURN  # keeps a listener from falling behind its informer


class Syncing:
    """Base of what reads the initial list: an informer, and each of its handlers."""

    def __init__(self) -> None:
        self._synced = asyncio.Event()

    def has_synced(self) -> bool:
        """Report whether the cache holds the complete initial list; for a handler, whether the list is processed."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        """Wait for the complete initial list in the cache; for a handler, until the list is processed."""
        await self._synced.wait()


class ProcessorListener(Syncing):
    """Queue and task of one handler; the registration returned by `add_event_handler`."""

    syncing: bool  # whether this handler takes part in the current resync

    def __init__(self, handler: ResourceEventHandler, clock: Clock, *, requested: float, resync_period: float) -> None:
        super().__init__()
        self.handler = handler
        self.requested_resync_period = requested
        self.resync_period = resync_period
        self.syncing = True
        self.task: asyncio.Task[None] | None = None
        self._clock = clock
        self._next_resync = clock.now() + resync_period
        self._pending: deque[Notification] = deque()
        self._handling = False  # awaits an async handler
        self._ready = asyncio.Event()
        self._initial = 0  # notifications of the initial list that are not handled yet
        self._upstream_synced = False
        self._warn_at = BACKLOG_WARNING

    @property
    def pending(self) -> int:
        """Number of notifications waiting for the handler."""
        return len(self._pending)

    @property
    def is_busy(self) -> bool:
        """Whether a notification waits for the handler, or is being handled."""
        return bool(self._pending) or self._handling

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
                        self._handling = True
                        await result
                except Exception as error:
                    log_failed_attempt(
                        logger, error, "handler %r failed on %s", self.handler, type(notification).__name__
                    )
                    await self._clock.sleep(CRASH_DELAY)
                self._handling = False
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

    @property
    def is_busy(self) -> bool:
        """Whether a handler has work."""
        return any(listener.is_busy for listener in self.listeners)

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
