"""SharedInformerFactory: one informer per resource, shared by all callers.

factory = SharedInformerFactory(client)
informer = factory.for_resource(PODS)
async with factory:                      # starts every requested informer, stops them at the end
    await factory.wait_for_cache_sync()
"""

from __future__ import annotations

import asyncio
import logging

from pilothouse.client.cache.delta_fifo import Transform
from pilothouse.client.cache.indexer import Lister
from pilothouse.client.cache.list_watch import SelectedListWatch
from pilothouse.client.cache.shared_informer import SharedIndexInformer, wait_for_cache_sync
from pilothouse.client.clock import REAL_CLOCK, Clock
from pilothouse.client.rest.client import Client
from pilothouse.machinery.failed_attempts import log_failed_attempt
from pilothouse.machinery.names import GroupVersionResource

logger = logging.getLogger(__name__)


class SharedInformerFactory:
    """Creates and runs shared informers with one namespace and one set of selectors.

    >>> from pilothouse.client import GroupVersionResource, SharedInformerFactory, name_of
    >>> async with SharedInformerFactory(client) as factory:
    ...     namespaces = factory.lister(GroupVersionResource("", "v1", "namespaces"))
    ...     factory.start()
    ...     await factory.wait_for_cache_sync()
    ...     print(name_of(namespaces.get("default")))
    default
    """

    def __init__(
        self,
        client: Client,
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        resync_period: float = 0.0,
        transform: Transform | None = None,
        clock: Clock = REAL_CLOCK,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._label_selector = label_selector
        self._field_selector = field_selector
        self._resync_period = resync_period
        self._transform = transform
        self._clock = clock
        self._informers: dict[GroupVersionResource, SharedIndexInformer] = {}
        self._tasks: dict[GroupVersionResource, asyncio.Task[None]] = {}

    def for_resource(self, resource: GroupVersionResource) -> SharedIndexInformer:
        """Return the informer of the resource; create it on the first call. `start` runs the informer."""
        if resource not in self._informers:
            collection = self._client.for_resource(resource, namespace=self._namespace)
            source = SelectedListWatch(collection, self._label_selector, self._field_selector)
            name = str(resource.group_resource)
            informer = SharedIndexInformer(source, name=name, resync_period=self._resync_period, clock=self._clock)
            if self._transform is not None:
                informer.set_transform(self._transform)
            self._informers[resource] = informer
        return self._informers[resource]

    def lister(self, resource: GroupVersionResource) -> Lister:
        """Return a lister over the cache of the resource's informer."""
        return Lister(self.for_resource(resource).indexer, resource.group_resource)

    def start(self) -> None:
        """Start every informer that is not running. Idempotent."""
        for resource, informer in self._informers.items():
            if resource not in self._tasks:
                task = self._tasks[resource] = asyncio.ensure_future(informer.run())
                task.add_done_callback(_log_informer_failure)

    async def wait_for_cache_sync(self) -> None:
        """Return when every informer has synced. Raises the error of an informer that failed."""
        synced = asyncio.ensure_future(wait_for_cache_sync(*self._informers.values()))
        try:
            done, _ = await asyncio.wait({synced, *self._tasks.values()}, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            synced.cancel()

    async def shutdown(self) -> None:
        """Stop every informer and wait until all have stopped. Raises the error of an informer that failed."""
        for task in self._tasks.values():
            task.cancel()
        results = await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                raise result

    async def __aenter__(self) -> SharedInformerFactory:
        self.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.shutdown()


def _log_informer_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log_failed_attempt(logger, error, "informer failed", final=True)
