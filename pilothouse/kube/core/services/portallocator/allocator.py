"""Hands out node ports. The bitmap in the store is read, changed and written back if nobody else wrote it meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random, SystemRandom
from typing import TypeVar

from pilothouse.apiserver.storage.errors import KeyExists, KeyNotFound, RevisionConflict
from pilothouse.apiserver.storage.interface import DEFAULT_ROOT, Revision, Store
from pilothouse.apiserver.storage.protobuf import ProtobufStore
from pilothouse.kube.core.services.portallocator.errors import (
    NotInitialized,
    PortAllocationError,
    PortAlreadyAllocated,
    PortNotInRange,
    PortRangeFull,
    RangeMismatch,
)
from pilothouse.kube.core.services.portallocator.metrics import (
    ALLOCATION_ERRORS,
    ALLOCATIONS,
    DYNAMIC,
    STATIC,
    counted,
)
from pilothouse.kube.core.services.portallocator.port_set import PortSet
from pilothouse.machinery.dataclass import dataclass

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class PortSnapshot:
    """The stored ports, and the revision at which they were read; 0 when there is nothing yet."""

    taken: PortSet
    revision: Revision


class PortAllocator:
    """Guarantees: a port is never handed out twice, by however many servers on one store."""

    def __init__(self, store: Store, ports: range, *, root: str = DEFAULT_ROOT, random: Random | None = None) -> None:
        self.ports = ports
        self._store = ProtobufStore(store)
        self._key = f"{root}/ranges/servicenodeports"
        self._random = random or SystemRandom()
        self._turn = asyncio.Lock()  # one at a time here, so that only other servers can be in the way

    async def allocate(self, port: int) -> None:
        """Raises PortNotInRange, PortAlreadyAllocated."""

        def take(taken: PortSet) -> None:
            if port not in self.ports:
                raise PortNotInRange(taken.range_text)
            if port in taken:
                raise PortAlreadyAllocated
            taken.add(port)

        with _measured(STATIC):
            await self._change(take)

    async def allocate_next(self) -> int:
        """Raises PortRangeFull."""

        def take(taken: PortSet) -> int:
            port = taken.next_free(self._random)
            if port is None:
                raise PortRangeFull
            taken.add(port)
            return port

        with _measured(DYNAMIC):
            return await self._change(take)

    async def release(self, *ports: int) -> None:
        """Giving back what nobody has is fine."""

        def give_back(taken: PortSet) -> None:
            for port in ports:
                taken.discard(port)

        if ports:
            await self._change(give_back)

    async def snapshot(self) -> PortSnapshot:
        """Return the stored ports, whatever their range; none is taken when nothing is stored."""
        entry = await self._store.get(self._key)
        return (
            PortSnapshot(PortSet.decode(entry.value), entry.modified) if entry else PortSnapshot(PortSet(self.ports), 0)
        )

    async def replace(self, seen: PortSnapshot, taken: PortSet) -> bool:
        """Stores these ports; false when they are not any more as they were seen."""
        try:
            if seen.revision:
                await self._store.update(self._key, taken.encode(), expected=seen.revision)
            else:
                await self._store.create(self._key, taken.encode())
        except (KeyExists, KeyNotFound, RevisionConflict):
            return False
        counted(taken)
        return True

    async def _change(self, change: Callable[[PortSet], _T]) -> _T:
        async with self._turn:
            while True:
                seen = await self.snapshot()
                if not seen.revision:
                    raise NotInitialized
                if seen.taken.ports != self.ports:
                    raise RangeMismatch
                result = change(seen.taken)
                if await self.replace(seen, seen.taken):
                    return result


@contextmanager
def _measured(scope: str) -> Iterator[None]:
    try:
        yield
    except PortAllocationError:
        ALLOCATION_ERRORS.labels(scope).inc()
        raise
    ALLOCATIONS.labels(scope).inc()
