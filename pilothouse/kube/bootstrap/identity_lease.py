"""Identity leases of API servers on one store.

A server creates its lease at start, renews it, and deletes it at shutdown. Servers delete expired leases of other
servers.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import socket
import uuid
from functools import partial

from pilothouse.apiserver.registry.own_access import OwnAccess
from pilothouse.apiserver.server.hooks import HookContext
from pilothouse.kube.bootstrap.periodic import repeat, try_once
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json, labels_of, metadata, name_of, namespace_of
from pilothouse.machinery.times import Clock, now_micro, parse_micro_time, system_clock

NAMESPACE = "kube-system"
IDENTITY_LABEL = {"apiserver.kubernetes.io/identity": "kube-apiserver"}
HOSTNAME_LABEL = "kubernetes.io/hostname"
DURATION = 3600
RENEW_EVERY = 10.0
COLLECT_EVERY = 3600.0


def hostname() -> str:
    return socket.gethostname().lower()


def server_id(host: str) -> str:
    """Return kube-apiserver's identity: a hash of the host name, stable across restarts."""
    parts = (host.encode(), b"kube-apiserver")
    digest = hashlib.sha256(b"".join(len(part).to_bytes(2, "big") + part for part in parts)).digest()
    return "apiserver-" + base64.b32encode(digest[:16]).decode().rstrip("=").lower()


class IdentityLease:
    def __init__(self, leases: OwnAccess, *, host: str, clock: Clock = system_clock) -> None:
        self.name = server_id(host)
        self._holder = f"{self.name}_{uuid.uuid4()}"
        self._leases = leases
        self._host = host
        self._clock = clock
        self._turn = asyncio.Lock()
        self._stopped = False

    async def start(self, context: HookContext) -> None:
        """Replace the lease of an earlier run, which would refer to a dead server."""
        await try_once(self._delete, "error deleting old lease")
        await self.renew()
        context.spawn(repeat(self.renew, every=RENEW_EVERY), name="identity-lease-controller")

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

    async def _delete(self) -> None:
        await self._leases.delete(self.name, namespace=NAMESPACE)


class IdentityLeaseGarbageCollector:
    def __init__(self, leases: OwnAccess, *, clock: Clock = system_clock) -> None:
        self._leases = leases
        self._clock = clock

    async def start(self, context: HookContext) -> None:
        context.spawn(self._keep(), name="identity-lease-garbage-collector")

    async def collect(self) -> None:
        """Raises StatusError."""
        for lease in await self._leases.list():
            if namespace_of(lease) == NAMESPACE and IDENTITY_LABEL.items() <= labels_of(lease).items():
                await self._delete_if_expired(lease)

    async def _keep(self) -> None:
        sync = partial(try_once, self.collect, "error collecting the leases of servers that are gone")
        await sync()
        await repeat(sync, every=COLLECT_EVERY)

    async def _delete_if_expired(self, listed: Json) -> None:
        """Delete the lease if it has expired. The list may be stale, so the lease is read again."""
        if not self._expired(listed):
            return
        lease = await self._leases.get(name_of(listed), namespace=NAMESPACE)
        if lease is not None and self._expired(lease):
            await self._leases.delete(name_of(lease), namespace=NAMESPACE)

    def _expired(self, lease: Json) -> bool:
        """Report whether the lease has expired. A lease without time or duration has not."""
        spec = lease.get("spec") or {}
        renewed, duration = spec.get("renewTime"), spec.get("leaseDurationSeconds")
        moment = parse_micro_time(renewed) if renewed else None
        return moment is None or duration is None or (self._clock() - moment).total_seconds() > duration
