"""Monitors: each watches one limited resource, sums up usage, and reports reductions.

Resources that are only counted are watched as metadata, and only their names are stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from pilothouse.client.cache.handlers import Deleted, ResourceEventHandlerFuncs
from pilothouse.client.cache.indexer import NAMESPACE_INDEX
from pilothouse.client.cache.keys import last_known_state
from pilothouse.client.cache.reflector import Reflector
from pilothouse.client.cache.shared_informer import SharedIndexInformer
from pilothouse.client.clock import Clock, cancelled
from pilothouse.client.rest.resource import ResourceClient
from pilothouse.controllers.resourcequota.evaluator import QuotaEvaluator, hard, is_counted, usage_in
from pilothouse.kinds.resource_lists import ResourceList, added, only
from pilothouse.machinery.event_loop import yield_periodically
from pilothouse.machinery.objects import Json, name_of, namespace_of
from pilothouse.machinery.quantity import ZERO


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
            update=lambda old, new: replenish(evaluator, old, new), delete=self._on_delete
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

    def _on_delete(self, obj: Deleted) -> None:
        if (last := last_known_state(obj)) is not None:
            self._replenish(self.evaluator, last, None)


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
