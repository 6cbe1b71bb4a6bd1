"""Values compiled from all objects of a resource, such as webhooks from their configurations.

    hooks = CompiledObjects(configurations, webhooks_of)
    await hooks.all()      → in the order of the objects' keys; cheap while nothing changes

An object is compiled again only if it has changed in the watch cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from pilothouse.apiserver.offload import offload_by_size
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.storage.interface import Revision
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _CompiledObject(Generic[T]):
    revision: Revision
    result: T


class CompiledObjects(Generic[T]):
    _made: dict[str, _CompiledObject[T]]  # by key
    _changes: int  # change count of the cache when `_all` was built

    def __init__(self, registry: RegistryStore, compile: Callable[[Json], T]) -> None:
        self._registry = registry
        self._compile = compile
        self._made = {}
        self._all: Sequence[T] = ()
        self._changes = -1

    async def all(self) -> Sequence[T]:
        """Return the values; treat as immutable. Raises CacheNotReady while the watch cache is empty or has lost the
        store."""
        cacher = self._registry.cacher
        if cacher.ready and cacher.changes == self._changes:
            return self._all
        changes = cacher.changes
        page = await cacher.list(self._registry.keys.prefix, not_older_than=0)
        made: dict[str, _CompiledObject[T]] = {}
        for stored in page.objects:
            known = self._made.get(stored.key)
            if known is None or known.revision != stored.revision:
                known = _CompiledObject(stored.revision, await offload_by_size(stored.size, self._compiled, stored))
            made[stored.key] = known
        self._made, self._all, self._changes = made, [each.result for each in made.values()], changes
        return self._all

    def _compiled(self, stored: StoredObject) -> T:
        return self._compile(stored.parse())
