"""Deletes the identity leases of servers that have not renewed them for as long as they last."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

from pilothouse.apiserver.registry.own_access import OwnAccess
from pilothouse.apiserver.server.hooks import HookContext
from pilothouse.kube.bootstrap.identity_lease import IDENTITY_LABEL, NAMESPACE
from pilothouse.kube.bootstrap.rounds import keep, try_once
from pilothouse.machinery.objects import Json, labels_of, name_of, namespace_of
from pilothouse.machinery.times import Clock, parse_micro_time, system_clock

PERIOD = 3600.0


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
        await keep(sync, every=PERIOD)

    async def _delete_if_expired(self, listed: Json) -> None:
        """The list may be old: the lease is read again before it is deleted."""
        if not self._expired(listed):
            return
        lease = await self._leases.get(name_of(listed), namespace=NAMESPACE)
        if lease is not None and self._expired(lease):
            await self._leases.delete(name_of(lease), namespace=NAMESPACE)

    def _expired(self, lease: Json) -> bool:
        """A lease without a time or a duration is none of ours, whatever its label says."""
        spec = lease.get("spec") or {}
        renewed, duration = spec.get("renewTime"), spec.get("leaseDurationSeconds")
        moment = parse_micro_time(renewed) if renewed else None
        return moment is None or duration is None or moment + timedelta(seconds=duration) < self._clock()
