"""DeltaFIFO: queued changes per object, oldest object first.

Guarantees: every change is delivered once, together with all changes of the same object and in order. Two consecutive
deletions are merged into the one with more knowledge of the final state. `replace` reports missing objects as
tombstones. `resync` never overtakes a queued change.

    add(a1) add(b1) update(a2) delete(a)   pop → a: [Added a1, Updated a2, Deleted a]     pop → b: [Added b1]
    known {a, b}; replace([b2])            pop → b: [Replaced b2]     pop → a: [Deleted tombstone(a)]
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Protocol, TypeAlias

from pilothouse.client.cache.keys import DeletedFinalStateUnknown, decoded, encoded, meta_namespace_key
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

Transform: TypeAlias = Callable[[Json], Json]
"""Transform an object before any reader sees it; may modify in place. Must be idempotent and fast."""


Held: TypeAlias = Json | bytes
"""An object, or its JSON text in a compact queue."""


class DeltaType(Enum):
    ADDED = "Added"
    UPDATED = "Updated"
    DELETED = "Deleted"
    REPLACED = "Replaced"
    """Contained in a list; whether the object changed is unknown."""
    SYNC = "Sync"
    """Known state, repeated by a periodic resync."""


@dataclass(slots=True)
class Delta:
    """Change and the resulting object; for a deletion, the last state or a tombstone."""

    type: DeltaType
    object: Held | DeletedFinalStateUnknown


Process: TypeAlias = Callable[[str, list[Delta], bool], None]
"""Consumer of (key, deltas, whether the deltas belong to the initial list)."""


class KnownObjects(Protocol):
    """Objects that the consumer of the queue holds."""

    def list_keys(self) -> list[str]: ...
    def get_by_key(self, key: str) -> Json | None: ...


class DeltaFIFO:
    _items: dict[str, list[Delta]]  # no list is empty
    _queue: deque[str]  # the keys of _items, each once, in processing order
    _initial: int  # items of the first replace that are not popped yet

    def __init__(
        self, known_objects: KnownObjects, *, transform: Transform | None = None, compact: bool = False
    ) -> None:
        """A compact queue holds the objects of a list as JSON text, so that a long list needs less memory."""
        self._known = known_objects
        self._transform = transform
        self._compact = compact
        self._items = {}
        self._queue = deque()
        self._initial = 0
        self._populated = False
        self._ready = asyncio.Event()
        self.synced = asyncio.Event()
        """Set when the initial list has been processed completely."""

    def add(self, obj: Json) -> None:
        self._change(DeltaType.ADDED, obj)

    def update(self, obj: Json) -> None:
        self._change(DeltaType.UPDATED, obj)

    def delete(self, obj: Json) -> None:
        """Queue the deletion. Objects unknown to both the queue and the consumer are ignored."""
        key = meta_namespace_key(obj)
        self._set_populated(0)
        if key in self._items or self._known.get_by_key(key) is not None:
            self._enqueue(key, DeltaType.DELETED, self._transformed(obj))

    def hold(self, obj: Json) -> Held:
        """Return the transformed object in the form in which it waits."""
        transformed = self._transformed(obj)
        return encoded(transformed) if self._compact else transformed

    def replace(self, objects: Iterable[Held]) -> None:
        """Queue every object as Replaced, and every other known object as Deleted. `hold` made the bytes, if any."""
        present = set()
        for obj in objects:
            key = meta_namespace_key(decoded(obj))
            present.add(key)
            self._enqueue(key, DeltaType.REPLACED, obj if isinstance(obj, bytes) else self.hold(obj))
        missing = [key for key in self._items if key not in present]
        missing += [key for key in self._known.list_keys() if key not in present and key not in self._items]
        for key in missing:
            self._enqueue(key, DeltaType.DELETED, DeletedFinalStateUnknown(key, self._last_known(key)))
        self._set_populated(len(present) + len(missing))

    def resync(self) -> None:
        """Queue every known object as Sync, except objects with queued changes."""
        for key in self._known.list_keys():
            obj = self._known.get_by_key(key)
            if obj is not None and key not in self._items:
                self._enqueue(key, DeltaType.SYNC, encoded(obj) if self._compact else obj)

    def pop(self, process: Process) -> None:
        """Process the deltas of the oldest object. Raises IndexError if the queue is empty."""
        key = self._queue.popleft()
        deltas = self._items.pop(key)
        initial = not self.synced.is_set()
        try:
            process(key, deltas, initial)
        finally:
            # Upstream decrements before processing, under a lock. Here no reader can run before this method returns.
            if self._initial:
                self._initial -= 1
                self._check_synced()

    async def wait(self) -> None:
        """Return when the queue is not empty."""
        while not self._queue:
            self._ready.clear()
            await self._ready.wait()

    def __len__(self) -> int:
        return len(self._queue)

    def _change(self, type_: DeltaType, obj: Json) -> None:
        self._set_populated(0)
        self._enqueue(meta_namespace_key(obj), type_, self._transformed(obj))

    def _transformed(self, obj: Json) -> Json:
        return obj if self._transform is None else self._transform(obj)

    def _enqueue(self, key: str, type_: DeltaType, obj: Held | DeletedFinalStateUnknown) -> None:
        deltas = self._items.get(key)
        if deltas is None:
            self._items[key] = [Delta(type_, obj)]
            self._queue.append(key)
            self._ready.set()
        elif type_ is DeltaType.DELETED and deltas[-1].type is DeltaType.DELETED:
            if isinstance(deltas[-1].object, DeletedFinalStateUnknown):
                deltas[-1] = Delta(type_, obj)
        else:
            deltas.append(Delta(type_, obj))

    def _last_known(self, key: str) -> Json | None:
        if key not in self._items:
            return self._known.get_by_key(key)
        newest = self._items[key][-1].object
        return newest.obj if isinstance(newest, DeletedFinalStateUnknown) else decoded(newest)

    def _set_populated(self, initial: int) -> None:
        if not self._populated:
            self._populated = True
            self._initial = initial
            self._check_synced()

    def _check_synced(self) -> None:
        if self._populated and self._initial == 0:
            self.synced.set()
