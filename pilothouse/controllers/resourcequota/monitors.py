"""Monitors of all resources limited by a quota; without quotas, nothing is watched.

Each monitor watches one resource, sums up usage, and reports reductions. Resources that are only counted are watched as
metadata, and only their names are stored.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Protocol

from pilothouse.client.cache.handlers import ResourceEventHandlerFuncs
from pilothouse.client.cache.indexer import NAMESPACE_INDEX
from pilothouse.client.cache.reflector import Reflector
from pilothouse.client.cache.shared_informer import SharedIndexInformer
from pilothouse.client.clock import Clock, cancelled
from pilothouse.client.discovery import DiscoveryClient
from pilothouse.client.rest.resource import ResourceClient
from pilothouse.controllers.context import ControllerContext, with_last_state
from pilothouse.controllers.resourcequota.evaluator import (
    Evaluators,
    QuotaEvaluator,
    extended_resources,
    hard,
    is_counted,
    usage_in,
)
from pilothouse.controllers.resources import DEVICE_CLASSES
from pilothouse.kinds.resources import ResourceList, added, only
from pilothouse.machinery.event_loop import yield_periodically
from pilothouse.machinery.names import GroupVersionResource
from pilothouse.machinery.objects import Json, name_of, namespace_of
from pilothouse.machinery.quantity import ZERO

logger = logging.getLogger(__name__)

_VERBS = ("create", "list", "watch", "delete")
_PATIENCE = 5.0
"""Seconds to wait for unresponsive resources, before the usage of the others is written."""


class QuotaMonitors:
    _names: set[str]  # resource names covered by the monitors
    _monitors: dict[GroupVersionResource, QuotaMonitor]

    def __init__(
        self,
        context: ControllerContext,
        evaluators: Evaluators,
        *,
        replenish: Replenish,
        appeared: Callable[[QuotaEvaluator], None],
    ) -> None:
        """`appeared` is called when a resource becomes countable."""
        self._context = context
        self._evaluators = evaluators
        self._replenish = replenish
        self._appeared = appeared
        self._names = set()
        self._monitors = {}
        self._announcements: set[asyncio.Task[None]] = set()
        self._refreshing = asyncio.Lock()

    async def cover(self, names: Iterable[str]) -> None:
        """Monitor all resources that can consume these names; return once synced or after the timeout."""
        async with self._refreshing:
            if not self._names.issuperset(names):
                await self._follow(self._names.union(names))
        try:
            async with asyncio.timeout(_PATIENCE):
                for monitor in self._matching(names):
                    await monitor.wait_synced()
        except TimeoutError:
            logger.warning("not all resources that quotas limit could be counted, proceeding anyway")

    def countable(self, names: Iterable[str]) -> list[QuotaMonitor]:
        """Return the synced monitors of resources that can consume these names."""
        return [monitor for monitor in self._matching(names) if monitor.has_synced]

    async def refresh(self, names: Iterable[str]) -> None:
        """Monitor the served resources that can consume these names. Raises the errors of discovery."""
        async with self._refreshing:
            await self._follow(set(names))

    async def stop(self) -> None:
        for task in self._announcements:
            task.cancel()
        await asyncio.gather(*(monitor.stop() for monitor in self._monitors.values()))

    def _matching(self, names: Iterable[str]) -> list[QuotaMonitor]:
        return [monitor for monitor in self._monitors.values() if monitor.evaluator.matching(names)]

    async def _follow(self, names: set[str]) -> None:
        wanted = await self._resources_using(names) if names else {}
        for resource in self._monitors.keys() - wanted.keys():
            await self._monitors.pop(resource).stop()
        for resource, evaluator in wanted.items():
            if resource not in self._monitors:
                monitor = self._monitors[resource] = self._monitor(resource, evaluator)
                task = asyncio.create_task(self._announce(monitor))
                self._announcements.add(task)
                task.add_done_callback(self._announcements.discard)
        self._names = names

    async def _resources_using(self, names: set[str]) -> dict[GroupVersionResource, QuotaEvaluator]:
        """Return the resources to monitor, with evaluators. Monitored resources of groups that failed discovery are
        kept."""
        discovered = await DiscoveryClient(self._context.client).server_resources()
        wanted = {
            resource: monitor.evaluator
            for resource, monitor in self._monitors.items()
            if resource.group_version in discovered.failed
        }
        for candidate in discovered.preferred():
            evaluator = (
                self._evaluators(
                    candidate.resource.group_resource,
                    lambda: extended_resources(self._context.informer(DEVICE_CLASSES).indexer.list()),
                )
                if (
                    candidate.namespaced
                    and not candidate.is_subresource
                    and all(verb in candidate.verbs for verb in _VERBS)
                )
                else None
            )
            if evaluator is not None and evaluator.matching(names):
                wanted[candidate.resource] = evaluator
        return wanted

    def _monitor(self, resource: GroupVersionResource, evaluator: QuotaEvaluator) -> QuotaMonitor:
        if not evaluator.counts_only:
            return ObjectMonitor(evaluator, self._context.informer(resource), self._replenish)
        objects = self._context.client.for_resource(resource)
        return CountMonitor(evaluator, objects, self._replenish, self._context.clock)

    async def _announce(self, monitor: QuotaMonitor) -> None:
        await monitor.wait_synced()
        self._appeared(monitor.evaluator)


class QuotaMonitor(Protocol):
    evaluator: QuotaEvaluator

    @property
    def has_synced(self) -> bool: ...

    async def wait_synced(self) -> None: ...

    async def usage(self, quota: Json) -> ResourceList:
        """Return the usage of limited resources in the quota's namespace."""

    async def stop(self) -> None: ...


class Replenish(Protocol):
    """Called when usage shrinks or moves to another quota; `new` is None after a deletion."""

    def __call__(self, evaluator: QuotaEvaluator, old: Json, new: Json | None) -> None: ...


class ObjectMonitor:
    """Monitor of objects with content-dependent usage; shares its informer with other controllers."""

    def __init__(self, evaluator: QuotaEvaluator, informer: SharedIndexInformer, replenish: Replenish) -> None:
        self.evaluator = evaluator
        self._informer = informer
        self._replenish = replenish
        handler = ResourceEventHandlerFuncs(
            update=lambda old, new: replenish(evaluator, old, new),
            delete=with_last_state(lambda last: self._replenish(self.evaluator, last, None)),
        )
        self._registration = informer.add_event_handler(handler)

    @property
    def has_synced(self) -> bool:
        return self._informer.has_synced()

    async def wait_synced(self) -> None:
        await self._informer.wait_synced()

    async def usage(self, quota: Json) -> ResourceList:
        total: ResourceList = dict.fromkeys(self.evaluator.matching(hard(quota)), ZERO)
        async for obj in yield_periodically(self._informer.indexer.by_index(NAMESPACE_INDEX, namespace_of(quota))):
            total = added(total, usage_in(quota, self.evaluator, obj))
        return total

    async def stop(self) -> None:
        self._informer.remove_event_handler(self._registration)


class ObjectCounts:
    """Number of objects per namespace, maintained by a reflector.

    `shrunk` is called with the namespace after a deletion.
    """

    _names: dict[str, set[str]]  # by namespace; sets are never empty

    def __init__(self, shrunk: Callable[[str], None]) -> None:
        self._shrunk = shrunk
        self._names = {}
        self.synced = asyncio.Event()

    def in_namespace(self, namespace: str) -> int:
        return len(self._names.get(namespace, ()))

    def add(self, obj: Json) -> None:
        self._names.setdefault(namespace_of(obj), set()).add(name_of(obj))

    update = add

    def delete(self, obj: Json) -> None:
        namespace = namespace_of(obj)
        names = self._names.get(namespace, set())
        names.discard(name_of(obj))
        if not names:
            self._names.pop(namespace, None)
        self._shrunk(namespace)

    def replace(self, objects: list[Json]) -> None:
        before, self._names = self._names, {}
        for obj in objects:
            self.add(obj)
        for namespace, names in before.items():
            if names - self._names.get(namespace, set()):
                self._shrunk(namespace)
        self.synced.set()

    def resync(self) -> None:
        """Ignore resyncs: the counts are complete."""


class CountMonitor:
    """Monitor of objects that are only counted."""

    def __init__(self, evaluator: QuotaEvaluator, objects: ResourceClient, replenish: Replenish, clock: Clock) -> None:
        self.evaluator = evaluator
        self._counts = ObjectCounts(
            lambda namespace: replenish(evaluator, {"metadata": {"namespace": namespace}}, None)
        )
        name = f"resource quota: {objects.resource}"
        self._task = asyncio.create_task(Reflector(objects.metadata_only(), self._counts, name=name, clock=clock).run())

    @property
    def has_synced(self) -> bool:
        return self._counts.synced.is_set()

    async def wait_synced(self) -> None:
        await self._counts.synced.wait()

    async def usage(self, quota: Json) -> ResourceList:
        names = self.evaluator.matching(hard(quota))
        number = self._counts.in_namespace(namespace_of(quota)) if is_counted(quota, self.evaluator, {}) else 0
        return {name: amount * number for name, amount in only(self.evaluator.usage({}), names).items()}

    async def stop(self) -> None:
        await cancelled(self._task)
