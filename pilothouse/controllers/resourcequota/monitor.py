"""Monitors: each follows one resource that quotas limit, adds up what its objects use, and tells when that shrinks.

Resources of which only the number of objects matters are followed by metadata, and only their names are kept.
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
        """Return how much the objects in the quota's namespace use of each resource that it limits."""

    async def stop(self) -> None: ...


class Replenish(Protocol):
    """Called when something is used less, or by other quotas: `new` is None when the object is gone."""

    def __call__(self, evaluator: QuotaEvaluator, old: Json, new: Json | None) -> None: ...


class ObjectMonitor:
    """Objects that use more than a place in the count. Their informer is shared with other controllers."""

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
    """The number of objects in each namespace, as a reflector tells it.

    `shrunk` is called with a namespace when something in it has gone."""

    _names: dict[str, set[str]]  # by namespace; no set is empty

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
        """A count is never in need of being told again."""


class CountMonitor:
    """Objects that are counted, and no more."""

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
