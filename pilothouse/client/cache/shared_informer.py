"""SharedIndexInformer: one cache of a collection for many readers and many event handlers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import TypeAlias

from pilothouse.client.cache import handlers, indexer
from pilothouse.client.cache.delta_fifo import Delta, DeltaFIFO, DeltaType, Transform
from pilothouse.client.cache.keys import DeletedFinalStateUnknown, decoded
from pilothouse.client.cache.list_watch import ListerWatcher, WatchErrorHandler, log_watch_error
from pilothouse.client.cache.reflector import BACKOFF, Reflector
from pilothouse.client.clock import REAL_CLOCK, Clock
from pilothouse.client.idleness import tracked_while_running
from pilothouse.client.wait import Backoff
from pilothouse.machinery.event_loop import yield_to_loop
from pilothouse.machinery.failed_attempts import log_failed_attempt
from pilothouse.machinery.objects import resource_version_of
from pilothouse.machinery.status_error import PilothouseError

logger = logging.getLogger(__name__)

MINIMUM_RESYNC_PERIOD = 1.0

Registration: TypeAlias = handlers.ProcessorListener


class InformerState(PilothouseError):
    """The informer is in the wrong state for the call: already started or already stopped.

    >>> from pilothouse.client import GroupVersionResource, SharedInformerFactory
    >>> from pilothouse.errors import InformerState
    >>> async with SharedInformerFactory(client) as factory:
    ...     informer = factory.for_resource(GroupVersionResource("", "v1", "namespaces"))
    ...     factory.start()
    ...     await factory.wait_for_cache_sync()
    >>> try:
    ...     informer.add_indexers({})
    ... except InformerState as error:
    ...     print(error)
    indexers were not added to informer ... because it has stopped already
    """


class SharedIndexInformer(handlers.Syncing):
    """Eventually consistent cache of one collection, with notifications.

    An object is identified by namespace and name, not by uid. Its history is a sequence of states: present at a
    resourceVersion, or absent.

    Ordering: the states of one object appear in the cache, and in the notifications of one handler, in the order in
    which they occurred. A handler receives one notification at a time, after the cache and all indexes were updated. By
    then the cache may contain later states.

    Eventual consistency: unless communication fails permanently or the informer stops, the cache reaches the current
    state of each object or a later state. Every handler is notified of every cache update after its registration. A
    handler registered late first receives all cached objects as additions.

    Not guaranteed: delivery of every state (several changes may be merged into one); any order between objects or
    between handlers; two notifications for a deletion followed by a creation under the same name (the handler may see
    one update: compare uids); the final state in a delete notification (it may be a DeletedFinalStateUnknown with an
    older state).

    A delete notification carries the last state; the object is absent at the resourceVersion of that notification.
    Objects are shared by all readers and must not be modified.

    >>> from pilothouse.client import GroupVersionResource, SharedInformerFactory
    >>> async with SharedInformerFactory(client) as factory:
    ...     informer = factory.for_resource(GroupVersionResource("", "v1", "namespaces"))
    ...     factory.start()
    ...     await informer.wait_synced()
    ...     print("default" in informer.indexer)
    True
    """

    def __init__(
        self,
        source: ListerWatcher,
        *,
        name: str = "informer",
        resync_period: float = 0.0,
        indexers: Mapping[str, indexer.IndexFunc] | None = None,
        use_watch_list: bool = True,
        compact: bool = False,
        backoff: Backoff = BACKOFF,
        clock: Clock = REAL_CLOCK,
    ) -> None:
        """`compact` keeps objects as JSON text: less memory, and each read returns a new copy."""
        super().__init__()
        self.name = name
        store = indexer.CompactIndexer if compact else indexer.Indexer
        self.indexer = store({indexer.NAMESPACE_INDEX: indexer.namespace_index, **(indexers or {})})
        self._compact = compact
        self._source = source
        self._resync_check_period = self._default_resync_period = resync_period
        self._use_watch_list = use_watch_list
        self._backoff = backoff
        self._clock = clock
        self._transform: Transform | None = None
        self._on_watch_error: WatchErrorHandler = log_watch_error
        self._detector: indexer.CacheMutationDetector | None = indexer.detector_from_environment(name, clock)
        self._processor = handlers.SharedProcessor(clock)
        self._reflector: Reflector | None = None
        self._fifo: DeltaFIFO | None = None
        self._tasks: asyncio.TaskGroup | None = None
        self._stopped = False
        self.loop: asyncio.AbstractEventLoop | None = None
        self.activity = 0

    def is_busy(self, within: float) -> bool:
        """Report whether events are undelivered: in the cache's queue, for a handler, or on a server to be watched."""
        if self._reflector is None or self._fifo is None or self._stopped:
            return False
        return self._reflector.is_behind or bool(len(self._fifo)) or self._processor.is_busy

    def add_event_handler(
        self, handler: handlers.ResourceEventHandler, *, resync_period: float | None = None
    ) -> Registration:
        """Register a handler. The handler first receives all cached objects as additions.

        With a resync period, the handler also receives every object as an update once per period. Raises InformerState
        after the informer has stopped.
        """
        if self._stopped:
            raise InformerState(f"handler was not added to informer {self.name} because it has stopped already")
        period = self._requested_period(self._default_resync_period if resync_period is None else resync_period)
        effective = _effective_period(period, self._resync_check_period)
        listener = handlers.ProcessorListener(handler, self._clock, requested=period, resync_period=effective)
        self._processor.listeners.append(listener)
        if self._tasks is not None:
            # Replay without suspension, so that no change is missed or repeated.
            for obj in self.indexer.stored():
                listener.add(handlers.AddNotification(obj, is_in_initial_list=True))
            if self.has_synced():
                listener.upstream_has_synced()
            listener.task = self._tasks.create_task(listener.run())
        return listener

    def remove_event_handler(self, registration: Registration) -> None:
        """Stop notifications to the handler. Idempotent."""
        if registration in self._processor.listeners:
            self._processor.listeners.remove(registration)
            if registration.task is not None:
                registration.task.cancel()

    def add_indexers(self, indexers: Mapping[str, indexer.IndexFunc]) -> None:
        """Add indexes. Raises InformerState after the informer has stopped."""
        if self._stopped:
            raise InformerState(f"indexers were not added to informer {self.name} because it has stopped already")
        self.indexer.add_indexers(indexers)

    def set_transform(self, transform: Transform) -> None:
        """Set the function that transforms objects before caching. Raises InformerState after the start."""
        self._refuse_if_started()
        self._transform = transform

    def set_watch_error_handler(self, handler: WatchErrorHandler) -> None:
        """Set the callback for failed lists and watches. Raises InformerState after the start."""
        self._refuse_if_started()
        self._on_watch_error = handler

    def detect_mutations(self) -> None:
        """Make `run` fail with CacheMutated soon after a cached object was modified. Raises InformerState after the
        start."""
        self._refuse_if_started()
        self._detector = indexer.CacheMutationDetector(self.name, self._clock)

    @property
    def is_stopped(self) -> bool:
        """Whether the informer has stopped and its cache is no longer updated."""
        return self._stopped

    @property
    def last_sync_resource_version(self) -> str:
        """Resource version of the newest state in the cache."""
        return "" if self._reflector is None else self._reflector.last_sync_resource_version

    @property
    def cached_resource_version(self) -> str:
        """Resource version that the whole cache has reached; "" while changes wait for the cache."""
        return "" if self._fifo is None or len(self._fifo) else self.last_sync_resource_version

    @property
    def pending(self) -> int:
        """Number of changes and notifications that wait for the cache or for a handler."""
        queued = 0 if self._fifo is None else len(self._fifo)
        return queued + sum(listener.pending for listener in self._processor.listeners)

    async def run(self) -> None:
        """Run until cancelled. May be called once."""
        self._refuse_if_started()
        fifo = self._fifo = DeltaFIFO(self.indexer, transform=self._transform, compact=self._compact)
        self._reflector = Reflector(
            self._source,
            fifo,
            name=self.name,
            resync_period=self._resync_check_period,
            should_resync=self._processor.should_resync,
            use_watch_list=self._use_watch_list,
            hold=fifo.hold,
            on_watch_error=self._on_watch_error,
            backoff=self._backoff,
            clock=self._clock,
        )
        try:
            with tracked_while_running(self):
                await self._run(fifo, self._reflector)
        finally:
            self._stopped = True

    async def _run(self, fifo: DeltaFIFO, reflector: Reflector) -> None:
        async with asyncio.TaskGroup() as self._tasks:
            for listener in self._processor.listeners:
                listener.task = self._tasks.create_task(listener.run())
            if self._detector is not None:
                self._tasks.create_task(self._detector.run())
            self._tasks.create_task(self._process(fifo))
            self._tasks.create_task(self._announce_sync(fifo))
            self._tasks.create_task(reflector.run())

    async def _process(self, fifo: DeltaFIFO) -> None:
        while True:
            await fifo.wait()
            for _ in range(min(len(fifo), handlers.OBJECTS_PER_TURN)):
                try:
                    fifo.pop(self._handle_deltas)
                except Exception as error:
                    log_failed_attempt(logger, error, "informer %s: cannot process a change", self.name)
            await yield_to_loop()

    async def _announce_sync(self, fifo: DeltaFIFO) -> None:
        await fifo.synced.wait()
        self._synced.set()
        for listener in self._processor.listeners:
            listener.upstream_has_synced()

    def _handle_deltas(self, key: str, deltas: list[Delta], is_in_initial_list: bool) -> None:
        self.activity += 1
        for delta in deltas:
            obj = delta.object
            if isinstance(obj, DeletedFinalStateUnknown):
                self.indexer.delete(key)
                self._processor.distribute(handlers.DeleteNotification(obj))
            elif delta.type is DeltaType.DELETED:
                self.indexer.delete(key)
                self._processor.distribute(handlers.DeleteNotification(decoded(obj)))
            else:
                old = self.indexer.get_by_key(key)
                self.indexer.replace_one(key, old, obj)
                if self._detector is not None:
                    self._detector.add_object(decoded(obj))
                if old is None:
                    self._processor.distribute(handlers.AddNotification(obj, is_in_initial_list))
                else:
                    unchanged = resource_version_of(old) == resource_version_of(decoded(obj))
                    self._processor.distribute(handlers.UpdateNotification(old, obj), sync=unchanged)

    def _requested_period(self, period: float) -> float:
        """Return the permitted resync period. Before the start, a shorter period also shortens the informer's check
        period."""
        if period <= 0:
            return 0.0
        period = max(period, MINIMUM_RESYNC_PERIOD)
        if period < self._resync_check_period:
            if self._tasks is not None:
                return self._resync_check_period
            self._resync_check_period = period
            for listener in self._processor.listeners:
                listener.resync_period = _effective_period(listener.requested_resync_period, period)
        return period

    def _refuse_if_started(self) -> None:
        if self._tasks is not None:
            raise InformerState(f"informer {self.name} has already started")


def _effective_period(requested: float, check: float) -> float:
    """Return the effective resync period; 0 if the informer does not check for resyncs."""
    return max(requested, check) if requested and check else 0.0


async def wait_for_cache_sync(*caches: SharedIndexInformer | Registration) -> None:
    """Return when every informer and every handler registration has synced.

    >>> from pilothouse.client import GroupVersionResource, SharedInformerFactory, wait_for_cache_sync
    >>> async with SharedInformerFactory(client) as factory:
    ...     nodes = factory.for_resource(GroupVersionResource("", "v1", "nodes"))
    ...     factory.start()
    ...     await wait_for_cache_sync(nodes)
    """
    for cache in caches:
        await cache.wait_synced()
