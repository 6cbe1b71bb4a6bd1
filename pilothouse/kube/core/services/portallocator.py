"""Node port allocation: compare-and-swap of the bitmap in the store."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random, SystemRandom
from typing import TypeVar

from prometheus_client import Counter, Gauge

from pilothouse.apiserver.storage.errors import KeyExists, KeyNotFound, RevisionConflict, StorageError
from pilothouse.apiserver.storage.interface import DEFAULT_ROOT, Revision, Store
from pilothouse.apiserver.storage.json_view import ProtobufStore
from pilothouse.apiserver.tallies import REGISTRY
from pilothouse.kube.core.services import port_set
from pilothouse.kube.core.services.allocation.operation import AllocationOperation
from pilothouse.machinery.dataclass import dataclass

STATIC = "static"
DYNAMIC = "dynamic"
"""Scopes of an allocation: a static port is chosen by the client."""

_PREFIX = "kube_apiserver_nodeport_allocator"
_ALLOCATED = Gauge(
    f"{_PREFIX}_allocated_ports",
    "[ALPHA] Gauge measuring the number of allocated NodePorts for Services",
    registry=REGISTRY,
)
_AVAILABLE = Gauge(
    f"{_PREFIX}_available_ports",
    "[ALPHA] Gauge measuring the number of available NodePorts for Services",
    registry=REGISTRY,
)
ALLOCATIONS = Counter(f"{_PREFIX}_allocation", "[ALPHA] Number of NodePort allocations", ("scope",), registry=REGISTRY)
ALLOCATION_ERRORS = Counter(
    f"{_PREFIX}_allocation_errors",
    "[ALPHA] Number of errors trying to allocate NodePort",
    ("scope",),
    registry=REGISTRY,
)
REPAIR_PORT_ERRORS = Counter(
    "apiserver_nodeport_repair_port_errors",
    "[ALPHA] Number of errors detected on ports by the repair loop broken down by type of error: leak, "
    "repair, full, outOfRange, duplicate, unknown",
    ("type",),
    registry=REGISTRY,
)
REPAIR_ERRORS = Counter(
    "apiserver_nodeport_repair_reconcile_errors",
    "[ALPHA] Number of reconciliation failures on the nodeport repair reconcile loop",
    registry=REGISTRY,
)


def set_allocated_ports(taken: port_set.PortSet) -> None:
    _ALLOCATED.set(len(taken))
    _AVAILABLE.set(len(taken.ports) - len(taken))


_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class PortSnapshot:
    """The stored ports and their revision, 0 if nothing is stored."""

    taken: port_set.PortSet
    revision: Revision


class PortAllocator:
    """Guarantees: a port is never allocated twice, even by several servers on one store."""

    def __init__(self, store: Store, ports: range, *, root: str = DEFAULT_ROOT, random: Random | None = None) -> None:
        self.ports = ports
        self._store = ProtobufStore(store)
        self._key = f"{root}/ranges/servicenodeports"
        self._random = random or SystemRandom()
        self._turn = asyncio.Lock()  # serializes this server's writes, so that only other servers cause conflicts

    async def allocate(self, port: int) -> None:
        """Allocate this port. Raises PortNotInRange, PortAlreadyAllocated."""

        def take(taken: port_set.PortSet) -> None:
            if port not in self.ports:
                raise port_set.PortNotInRange(taken.range_text)
            if port in taken:
                raise port_set.PortAlreadyAllocated
            taken.add(port)

        with _measured(STATIC):
            await self._change(take)

    async def allocate_next(self) -> int:
        """Allocate any free port. Raises PortRangeFull."""

        def take(taken: port_set.PortSet) -> int:
            port = taken.next_free(self._random)
            if port is None:
                raise port_set.PortRangeFull
            taken.add(port)
            return port

        with _measured(DYNAMIC):
            return await self._change(take)

    async def release(self, *ports: int) -> None:
        """Release the ports. Idempotent."""

        def give_back(taken: port_set.PortSet) -> None:
            for port in ports:
                taken.discard(port)

        if ports:
            await self._change(give_back)

    async def snapshot(self) -> PortSnapshot:
        """Return the stored ports of any range, or an empty set if nothing is stored."""
        entry = await self._store.get(self._key)
        return (
            PortSnapshot(port_set.PortSet.decode(entry.value), entry.modified)
            if entry
            else PortSnapshot(port_set.PortSet(self.ports), 0)
        )

    async def replace(self, expected: PortSnapshot, taken: port_set.PortSet) -> bool:
        """Store these ports. Return False if the stored ports have changed since `seen`."""
        try:
            if expected.revision:
                await self._store.update(self._key, taken.encode(), expected=expected.revision)
            else:
                await self._store.create(self._key, taken.encode())
        except (KeyExists, KeyNotFound, RevisionConflict):
            return False
        set_allocated_ports(taken)
        return True

    async def _change(self, change: Callable[[port_set.PortSet], _T]) -> _T:
        async with self._turn:
            while True:
                snapshot = await self.snapshot()
                if not snapshot.revision:
                    raise port_set.NotInitialized
                if snapshot.taken.ports != self.ports:
                    raise port_set.RangeMismatch
                result = change(snapshot.taken)
                if await self.replace(snapshot, snapshot.taken):
                    return result


@contextmanager
def _measured(scope: str) -> Iterator[None]:
    try:
        yield
    except port_set.PortAllocationError:
        ALLOCATION_ERRORS.labels(scope).inc()
        raise
    ALLOCATIONS.labels(scope).inc()


_FIRST_DUMMY = 32769
_LAST_TRIED = 99
_log = logging.getLogger(__name__)


class PortOperation(AllocationOperation[PortAllocator, int]):
    """The node ports of one write. A dry run allocates nothing, and makes up ports for dynamic allocation."""

    async def allocate(self, port: int) -> None:
        """Raises PortAllocationError."""
        if not self._dry_run:
            await self._allocator.allocate(port)
        elif port in self._taken or port in (await self._allocator.snapshot()).taken:
            raise port_set.PortAlreadyAllocated
        self._taken.append(port)

    async def allocate_next(self) -> int:
        """Raises PortAllocationError."""
        port = await (self._next_dummy() if self._dry_run else self._allocator.allocate_next())
        self._taken.append(port)
        return port

    async def _next_dummy(self) -> int:
        """Return a made-up port. Upstream searches for a free port below 100 only, outside of any usual range."""
        if not self._taken:
            return _FIRST_DUMMY
        following = max(0, *self._taken) + 1
        taken = (await self._allocator.snapshot()).taken
        free = (port for port in range(following, _LAST_TRIED + 1) if port not in taken)
        return next(free, following)

    def give_up(self, port: int) -> None:
        """Release the port on commit."""
        self._given_up.append(port)

    async def _release(self, allocated: list[int]) -> None:
        if not self._dry_run:
            await release_ports(self._allocator, allocated)


async def release_ports(allocator: PortAllocator, ports: list[int]) -> None:
    """Release the ports. Errors are logged, since the outcome of the write is already decided; the repair cleans up."""
    try:
        await allocator.release(*ports)
    except (port_set.PortAllocationError, StorageError) as error:
        _log.error("error releasing node ports %s: %s", ports, error)
