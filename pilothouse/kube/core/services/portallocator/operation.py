"""The node ports of one write: taken at once, given back when the write fails, and others given up when it succeeds."""

from __future__ import annotations

import logging

from pilothouse.apiserver.storage.errors import StorageError
from pilothouse.kube.core.services.portallocator.allocator import PortAllocator
from pilothouse.kube.core.services.portallocator.errors import PortAllocationError, PortAlreadyAllocated

_FIRST_DUMMY = 32769
_LAST_TRIED = 99
_log = logging.getLogger(__name__)


class PortOperation:
    """In a dry run nothing is taken: ports that nobody named are made up."""

    def __init__(self, allocator: PortAllocator, *, dry_run: bool) -> None:
        self._allocator = allocator
        self._dry_run = dry_run
        self._taken: list[int] = []
        self._given_up: list[int] = []

    async def allocate(self, port: int) -> None:
        """Raises PortAllocationError."""
        if not self._dry_run:
            await self._allocator.allocate(port)
        elif port in self._taken or port in (await self._allocator.snapshot()).taken:
            raise PortAlreadyAllocated
        self._taken.append(port)

    async def allocate_next(self) -> int:
        """Raises PortAllocationError."""
        port = await (self._next_dummy() if self._dry_run else self._allocator.allocate_next())
        self._taken.append(port)
        return port

    async def _next_dummy(self) -> int:
        """Upstream looks for a free one only below a hundred, which nobody gets to who names ports in range."""
        if not self._taken:
            return _FIRST_DUMMY
        following = max(0, *self._taken) + 1
        taken = (await self._allocator.snapshot()).taken
        free = (port for port in range(following, _LAST_TRIED + 1) if port not in taken)
        return next(free, following)

    def give_up(self, port: int) -> None:
        """The port is released when the write has succeeded."""
        self._given_up.append(port)

    async def commit(self) -> None:
        await self._release(self._given_up)

    async def revert(self) -> None:
        await self._release(self._taken)

    async def _release(self, ports: list[int]) -> None:
        if not self._dry_run:
            await release_ports(self._allocator, ports)


async def release_ports(allocator: PortAllocator, ports: list[int]) -> None:
    """A failure is left to the repair: the write that it belongs to has already been decided."""
    try:
        await allocator.release(*ports)
    except (PortAllocationError, StorageError) as error:
        _log.error("error releasing node ports %s: %s", ports, error)
