"""The Endpoints and the EndpointSlice of the `kubernetes` service list the servers that are alive.

By default each server renews a lease of its own and writes down what all leases say together; so one that vanishes is
dropped by the others. Servers on one store need not agree on their ports: only one that is alone puts the port right.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from pilothouse.kube.bootstrap.address import PublicAddress
from pilothouse.kube.bootstrap.endpoint_leases import EndpointLeases
from pilothouse.kube.bootstrap.written_endpoints import WrittenEndpoints


class EndpointReconciler(Protocol):
    """Keeps this server's address among the endpoints while it is ready."""

    async def reconcile(self) -> None:
        """Raises StatusError, StorageError. Does nothing once `remove` was called."""

    async def forget_earlier_run(self) -> bool:
        """Remove what an earlier run left, so that nobody is sent here before this server is ready.

        Return whether there was something.
        """

    async def remove(self) -> None:
        """Take this server off the list for the rest of its life."""


class NoEndpointReconciler:
    """Leaves the endpoints to somebody else."""

    async def reconcile(self) -> None:
        return

    async def forget_earlier_run(self) -> bool:
        return False

    async def remove(self) -> None:
        return


class LeaseEndpointReconciler:
    def __init__(self, address: PublicAddress, leases: EndpointLeases, written: WrittenEndpoints) -> None:
        self._address = address
        self._leases = leases
        self._written = written
        self._turn = asyncio.Lock()
        self._stopped = False

    async def reconcile(self) -> None:
        async with self._turn:
            if self._stopped:
                return
            await self._leases.renew(self._address.ip)
            await self._written.write(await self._leases.list())

    async def forget_earlier_run(self) -> bool:
        async with self._turn:
            left = await self._leases.remove(self._address.ip)
            others = await self._leases.list()
            if left and others:
                await self._written.write(others)
            return left

    async def remove(self) -> None:
        self._stopped = True
        async with self._turn:
            await self._leases.remove(self._address.ip)
            await self._written.write(await self._leases.list())


class MasterCountEndpointReconciler:
    """Each server adds itself. Where there are more than `count`, those behind it in the order of addresses go."""

    def __init__(self, address: PublicAddress, count: int, written: WrittenEndpoints) -> None:
        self._address = address
        self._count = count
        self._written = written
        self._turn = asyncio.Lock()
        self._stopped = False

    async def reconcile(self) -> None:
        async with self._turn:
            if not self._stopped:
                listed = await self._written.read()
                kept = self._address.ip in listed and len(listed) <= self._count
                await self._written.write(listed if kept else self._with_own(listed), ports=True)

    async def forget_earlier_run(self) -> bool:
        async with self._turn:
            return await self._take_off()

    async def remove(self) -> None:
        self._stopped = True
        async with self._turn:
            await self._take_off()

    async def _take_off(self) -> bool:
        listed = await self._written.read()
        if self._address.ip not in listed:
            return False
        await self._written.write([ip for ip in listed if ip != self._address.ip])
        return True

    def _with_own(self, listed: Sequence[str]) -> list[str]:
        own = self._address.ip
        behind = sorted({own, *listed}, key=lambda ip: (ip < own, ip))  # from this server on, and round to it
        return sorted([own, *behind[1:][max(0, len(behind) - self._count) :]])
