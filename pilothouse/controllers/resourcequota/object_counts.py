"""How many objects of a resource there are in each namespace, as a reflector tells it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from pilothouse.machinery.objects import Json, name_of, namespace_of


class ObjectCounts:
    """`shrunk` is called with a namespace when something in it has gone."""

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
