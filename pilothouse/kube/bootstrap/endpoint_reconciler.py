"""Reconcilers of the Endpoints and the EndpointSlice of the `kubernetes` service.

By default each server renews a lease and writes the addresses of all leases, which drops dead servers. Servers on one
store may have different ports: only a single server corrects the port.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from pilothouse.kube.bootstrap.address import PublicAddress
from pilothouse.kube.bootstrap.endpoint_leases import EndpointLeases
from pilothouse.kube.bootstrap.written_endpoints import WrittenEndpoints


class EndpointReconciler(Protocol):
    """Keeps this server's address in the endpoints while the server is ready."""

    async def reconcile(self) -> None:
        """Raises StatusError, StorageError. Does nothing once `remove` was called."""

    async def forget_earlier_run(self) -> bool:
        """Remove the address of an earlier run, so that clients wait until this server is ready.

        Report whether the address existed.
        """

    async def remove(self) -> None:
        """Remove this server permanently."""


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
    """Adds this server. Beyond `count` addresses, the next addresses in order are removed."""

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
        behind = sorted({own, *listed}, key=lambda ip: (ip < own, ip))  # starting at this server, cyclically
        return sorted([own, *behind[1:][max(0, len(behind) - self._count) :]])
