"""The lease that says this server is alive: made at start, renewed every few seconds and deleted at shutdown."""

from __future__ import annotations

import asyncio
import uuid

from pilothouse.apiserver.registry.own_access import OwnAccess
from pilothouse.apiserver.server.hooks import HookContext
from pilothouse.kube.bootstrap.address import PublicAddress
from pilothouse.kube.bootstrap.identity import server_id
from pilothouse.kube.bootstrap.rounds import keep, try_once
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json, metadata
from pilothouse.machinery.times import Clock, now_micro, system_clock

NAMESPACE = "kube-system"
IDENTITY_LABEL = {"apiserver.kubernetes.io/identity": "kube-apiserver"}
HOSTNAME_LABEL = "kubernetes.io/hostname"
ADDRESS_ANNOTATION = "kubernetes.io/peer-advertise-address"
DURATION = 3600
RENEW_EVERY = 10.0


class IdentityLease:
    def __init__(self, leases: OwnAccess, *, host: str, address: PublicAddress, clock: Clock = system_clock) -> None:
        self.name = server_id(host)
        self._holder = f"{self.name}_{uuid.uuid4()}"
        self._leases = leases
        self._host = host
        self._address = address
        self._clock = clock
        self._turn = asyncio.Lock()
        self._stopped = False

    async def start(self, context: HookContext) -> None:
        """What an earlier run left would point the others to a server that is not there."""
        await try_once(self._delete, "error deleting old lease")
        await self.renew()
        context.spawn(keep(self.renew, every=RENEW_EVERY), name="identity-lease-controller")

    async def stop(self) -> None:
        self._stopped = True
        async with self._turn:
            await self._delete()

    async def renew(self) -> None:
        async with self._turn:
            if not self._stopped:
                await try_once(self._renew, "failed to renew the identity lease")

    async def _renew(self) -> None:
        lease: Json = {
            "kind": "Lease",
            "apiVersion": "coordination.k8s.io/v1",
            "metadata": {"name": self.name, "namespace": NAMESPACE},
            "spec": {"holderIdentity": self._holder, "leaseDurationSeconds": DURATION},
        }
        self._mark(lease)
        try:
            await self._leases.update(lease, self._mark)
        except NotFound:
            await self._leases.ensure(lease)

    def _mark(self, lease: Json) -> None:
        lease["spec"]["renewTime"] = now_micro(self._clock)
        metadata(lease).setdefault("labels", {}).update(IDENTITY_LABEL | {HOSTNAME_LABEL: self._host})
        metadata(lease).setdefault("annotations", {})[ADDRESS_ANNOTATION] = str(self._address)

    async def _delete(self) -> None:
        await self._leases.delete(self.name, namespace=NAMESPACE)
