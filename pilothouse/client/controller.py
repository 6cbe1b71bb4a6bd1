"""Controller: workers that reconcile keys from a queue after the informer caches have synced.

Guarantees: no worker starts before every cache has synced. A key is reconciled by one worker at a time. A key whose
reconcile raised is retried with growing delays; a key that succeeded is reset in the rate limiter. An error in a
reconcile never ends a worker. `stop` lets running reconciles finish.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Generic, Protocol, TypeAlias, TypeVar

from pilothouse.client.clock import REAL_CLOCK, Clock, done_within
from pilothouse.client.idleness import tracked_while_running
from pilothouse.client.workqueue.queue import ShutDown
from pilothouse.client.workqueue.rate_limiting import RateLimitingQueue
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.failed_attempts import log_failed_attempt
from pilothouse.machinery.objects import Json, namespace_of
from pilothouse.machinery.status_error import PilothouseError

if TYPE_CHECKING:
    from pilothouse.client.cache.handlers import Deleted, ResourceEventHandlerFuncs

logger = logging.getLogger(__name__)

T = TypeVar("T", bound=Hashable)


class Synced(Protocol):
    """Informer or handler registration."""

    async def wait_synced(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Requeue:
    """Result of a successful reconcile that requests another call for the same key after `after` seconds.

    >>> from pilothouse.client import Requeue
    >>> async def reconcile(key: str) -> Requeue:
    ...     return Requeue(after=30.0)
    """

    after: float


class TryAgain(PilothouseError):
    """Raised by a reconcile that waits for other components: retried with growing delays, not logged as an error.

    >>> from pilothouse.errors import TryAgain
    >>> async def reconcile(key: str) -> None:
    ...     raise TryAgain(f"{key} waits for its volume")
    """


Reconcile: TypeAlias = Callable[[T], Awaitable[Requeue | None]]


class Controller(Generic[T]):
    """Calls `reconcile` for each key on `queue`.

    After `max_retries` consecutive failures a key is dropped until it is added again; None retries forever.

    >>> from pilothouse.client import Controller, GroupVersionResource, SharedInformerFactory, enqueue_keys
    >>> seen = set()
    >>> async def reconcile(key: str) -> None:
    ...     seen.add(key)
    ...     if len(seen) == 4:
    ...         controller.stop()
    >>> async with SharedInformerFactory(client) as factory:
    ...     namespaces = factory.for_resource(GroupVersionResource("", "v1", "namespaces"))
    ...     controller = Controller("namespaces", reconcile, caches=(namespaces,), workers=2)
    ...     _ = namespaces.add_event_handler(enqueue_keys(controller.queue))
    ...     factory.start()
    ...     await controller.run()
    >>> sorted(seen)
    ['default', 'kube-node-lease', 'kube-public', 'kube-system']
    """

    def __init__(
        self,
        name: str,
        reconcile: Reconcile[T],
        *,
        caches: tuple[Synced, ...] = (),
        workers: int = 1,
        queue: RateLimitingQueue[T] | None = None,
        max_retries: int | None = None,
        stop_timeout: float = 30.0,
        clock: Clock = REAL_CLOCK,
    ) -> None:
        self.name = name
        self.queue: RateLimitingQueue[T] = RateLimitingQueue(name, clock=clock) if queue is None else queue
        self._reconcile = reconcile
        self._caches = caches
        self._workers = workers
        self._max_retries = max_retries
        self._stop_timeout = stop_timeout
        self._clock = clock
        self._stop = asyncio.Event()
        self._started = False
        self.loop: asyncio.AbstractEventLoop | None = None
        self.activity = 0

    def is_busy(self, within: float) -> bool:
        """Report whether the controller waits for its caches, or has work now or `within` seconds."""
        return not self._started or self.queue.is_busy(within)

    async def run(self) -> None:
        """Run until `stop`, then drain the queue; or until cancelled, which also cancels running reconciles."""
        with tracked_while_running(self):
            await self._run()

    async def _run(self) -> None:
        if not await self._wait_for_caches():
            return
        self._started = True
        logger.debug("controller %s starts %d workers", self.name, self._workers)
        async with asyncio.TaskGroup() as workers:
            tasks = [workers.create_task(self._work()) for _ in range(self._workers)]
            try:
                await self._stop.wait()
                drained = asyncio.ensure_future(self.queue.shut_down_with_drain())
                if not await done_within(self._stop_timeout, drained, self._clock):
                    logger.warning("controller %s did not drain within %g s", self.name, self._stop_timeout)
            finally:
                self.queue.shut_down()
                for task in tasks:
                    task.cancel()
        logger.debug("controller %s has stopped", self.name)

    def stop(self) -> None:
        """Accept no more keys; reconcile the queued keys within `stop_timeout` seconds."""
        self._stop.set()

    async def _wait_for_caches(self) -> bool:
        """Return whether all caches synced before the controller was stopped."""
        synced = asyncio.ensure_future(self._caches_synced())
        stopped = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait({synced, stopped}, return_when=asyncio.FIRST_COMPLETED)
            return synced.done()
        finally:
            synced.cancel()
            stopped.cancel()

    async def _caches_synced(self) -> None:
        for cache in self._caches:
            await cache.wait_synced()

    async def _work(self) -> None:
        while True:
            try:
                item = await self.queue.get()
            except ShutDown:
                return
            try:
                await self._reconcile_one(item)
            finally:
                self.activity += 1
                self.queue.done(item)

    async def _reconcile_one(self, item: T) -> None:
        try:
            result = await self._reconcile(item)
        except TryAgain as wait:
            logger.debug("controller %s will retry %r: %s", self.name, item, wait)
            self.queue.add_rate_limited(item)
            return
        except Exception as error:
            self._handle_failure(item, error)
            return
        self.queue.forget(item)
        if result is not None:
            self.queue.add_after(item, result.after)

    def _handle_failure(self, item: T, error: Exception) -> None:
        """Log and requeue."""
        failures = self.queue.num_requeues(item)
        if self._max_retries is not None and failures >= self._max_retries:
            message = "controller %s gives up on %r after %d retries"
            log_failed_attempt(logger, error, message, self.name, item, failures, final=True)
            self.queue.forget(item)
        else:
            message = "controller %s failed to reconcile %r, will try again"
            log_failed_attempt(logger, error, message, self.name, item)
            self.queue.add_rate_limited(item)


class KeyQueue(Protocol):
    def add(self, item: str) -> None: ...


def enqueue_keys(queue: KeyQueue) -> ResourceEventHandlerFuncs:
    """Return a handler that enqueues the key of every added, updated or deleted object.

    >>> from pilothouse.client import WorkQueue, enqueue_keys
    >>> queue: WorkQueue[str] = WorkQueue()
    >>> enqueue_keys(queue).on_add({"metadata": {"namespace": "default", "name": "web"}}, False)
    >>> await queue.get()
    'default/web'
    """
    # Imported here: a server starts controllers without informers.
    from pilothouse.client.cache.handlers import ResourceEventHandlerFuncs
    from pilothouse.client.cache.keys import deletion_handling_key

    def add(obj: Deleted) -> None:
        queue.add(deletion_handling_key(obj))

    return ResourceEventHandlerFuncs(add=add, update=lambda old, new: add(new), delete=add)


def enqueue_mapped(queue: KeyQueue, keys_for: Callable[[Json], Iterable[str]]) -> ResourceEventHandlerFuncs:
    """Return a handler that enqueues the keys of `keys_for(object)`; after an update, for the old and the new state.

    >>> from pilothouse.client import WorkQueue, enqueue_mapped
    >>> queue: WorkQueue[str] = WorkQueue()
    >>> by_node = enqueue_mapped(queue, lambda pod: [pod["spec"]["nodeName"]])
    >>> by_node.on_add({"metadata": {"name": "web"}, "spec": {"nodeName": "n1"}}, False)
    >>> await queue.get()
    'n1'
    """
    from pilothouse.client.cache.handlers import ResourceEventHandlerFuncs
    from pilothouse.client.cache.keys import last_known_state

    def add(obj: Json | None) -> None:
        for key in keys_for(obj) if obj is not None else ():
            queue.add(key)

    def update(old: Json, new: Json) -> None:
        add(old)
        add(new)

    return ResourceEventHandlerFuncs(add=add, update=update, delete=lambda obj: add(last_known_state(obj)))


def enqueue_owner(queue: KeyQueue, kind: str) -> ResourceEventHandlerFuncs:
    """Return a handler that enqueues the key of the object's controller owner, if its kind is `kind`.

    >>> from pilothouse.client import WorkQueue, enqueue_owner
    >>> queue: WorkQueue[str] = WorkQueue()
    >>> owner = {"kind": "Foo", "name": "f", "controller": True}
    >>> enqueue_owner(queue, "Foo").on_add({"metadata": {"name": "web", "ownerReferences": [owner]}}, False)
    >>> await queue.get()
    'f'
    """

    def owners(obj: Json) -> Iterable[str]:
        namespace = namespace_of(obj)
        for owner in (obj.get("metadata") or {}).get("ownerReferences") or ():
            if owner.get("controller") and owner.get("kind") == kind:
                yield f"{namespace}/{owner['name']}" if namespace else owner["name"]

    return enqueue_mapped(queue, owners)
