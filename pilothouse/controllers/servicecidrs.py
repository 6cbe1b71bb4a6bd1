"""service-cidr-controller: keeps a ServiceCIDR while services use addresses that no other ServiceCIDR covers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeAlias

from pilothouse.client.cache.handlers import ResourceEventHandlerFuncs
from pilothouse.client.clock import utc_now
from pilothouse.client.controller import Controller, Requeue
from pilothouse.client.events.event import WARNING, EventSource
from pilothouse.client.events.recorder import EventRecorder
from pilothouse.client.rest.options import PatchType
from pilothouse.controllers.context import ControllerContext, with_last_state
from pilothouse.controllers.resources import IP_ADDRESSES, SERVICE_CIDRS
from pilothouse.kinds.conditions import Condition, find_condition
from pilothouse.kinds.deletion import deletion_time, has_finalizer, is_deleting
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json, labels_of, name_of
from pilothouse.machinery.status_error import StatusError
from pilothouse.machinery.times import format_time

FINALIZER = "networking.k8s.io/service-cidr-finalizer"
_NAME = "service-cidr-controller"
_WORKERS = 5
_MAX_RETRIES = 15
_GRACE = 10.0
"""Seconds for allocators to observe a terminating ServiceCIDR."""
_READY = Condition("Ready", "True", "", "Kubernetes Service CIDR is ready")
_TERMINATING = Condition(
    "Ready",
    "False",
    "Terminating",
    "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR",
)
Network: TypeAlias = IPv4Network | IPv6Network
Address: TypeAlias = IPv4Address | IPv6Address
_MANAGED_BY = "ipaddress.kubernetes.io/managed-by"
_ALLOCATOR = "ipallocator.k8s.io"
_PARSED = 1024


async def run(context: ControllerContext) -> None:
    await _ServiceCIDRs(context).run()


class _ServiceCIDRs:
    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._objects = context.client.for_resource(SERVICE_CIDRS)
        self._cidrs, self._ips = context.informer(SERVICE_CIDRS), context.informer(IP_ADDRESSES)
        self._queue = context.queue("ipaddresses", str)
        self._recorder = EventRecorder(context.client, EventSource(_NAME), clock=context.clock)

    async def run(self) -> None:
        self._cidrs.add_event_handler(
            ResourceEventHandlerFuncs(
                add=self._cidr_added,
                update=lambda old, new: self._queue.add(name_of(new)),
                delete=with_last_state(self._cidr_added),
            )
        )
        self._ips.add_event_handler(
            ResourceEventHandlerFuncs(add=self._ip_changed, delete=with_last_state(self._ip_changed))
        )
        cidrs = Controller(
            _NAME,
            self._sync,
            caches=(self._cidrs, self._ips),
            workers=_WORKERS,
            queue=self._queue,
            max_retries=_MAX_RETRIES,
            clock=self._context.clock,
        )
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(cidrs.run())
            tasks.create_task(self._recorder.run())

    def _cidr_added(self, cidr: Json) -> None:
        for name in {name_of(cidr), *overlapping(cidr, self._cidrs.indexer.list())}:
            self._queue.add(name)

    def _ip_changed(self, ip: Json) -> None:
        """Enqueue terminating ServiceCIDRs that contain the address; others do not depend on usage."""
        if (address := address_of(ip)) is not None:
            ending = (other for other in self._cidrs.indexer.list() if is_deleting(other))
            for name in containing(address, ending):
                self._queue.add(name)

    async def _sync(self, name: str) -> Requeue | None:
        cidr = self._cidrs.indexer.get_by_key(name)
        if cidr is None:
            return None
        try:
            if is_deleting(cidr):
                if is_needed(cidr, self._cidrs.indexer.list(), self._ips.indexer.list()):
                    await self._say(cidr, _TERMINATING)
                    return None
                deleted = deletion_time(cidr) or utc_now(self._context.clock)
                left = _GRACE - (utc_now(self._context.clock) - deleted).total_seconds()
                if left > 0:
                    return Requeue(left)
                if has_finalizer(cidr, FINALIZER):
                    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": [FINALIZER]}}
                    await self._objects.patch(name_of(cidr), patch, PatchType.STRATEGIC)
                return None
            if not has_finalizer(cidr, FINALIZER):
                patch = {"metadata": {"finalizers": [FINALIZER]}}
                await self._objects.patch(name_of(cidr), patch, PatchType.STRATEGIC)
            try:
                await self._say(cidr, _READY)
            except NotFound:
                raise
            except StatusError:
                message = "The ServiceCIDR Status can not be set to Ready=True"
                self._recorder.event(cidr, WARNING, "KubernetesServiceCIDRError", message)
                raise
        except NotFound:
            return None
        return None

    async def _say(self, cidr: Json, wanted: Condition) -> None:
        if wanted.is_same_as(find_condition(cidr, wanted.type)):
            return
        condition = {
            "type": wanted.type,
            "status": wanted.status,
            "reason": wanted.reason,
            "message": wanted.message,
            "lastTransitionTime": format_time(utc_now(self._context.clock)),
        }
        applied = {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "ServiceCIDR",
            "metadata": {"name": name_of(cidr)},
            "status": {"conditions": [condition]},
        }
        await self._objects.apply(applied, field_manager=_NAME, force=True, subresource="status")


def networks_of(cidr: Json) -> list[Network]:
    return [network for text in cidr["spec"].get("cidrs") or () if (network := _network(text)) is not None]


@lru_cache(_PARSED)
def _network(text: str) -> Network | None:
    try:
        return ip_network(text)
    except ValueError:
        return None


def address_of(ip: Json) -> Address | None:
    """Return the address of an IPAddress managed by the service allocator; otherwise None."""
    if labels_of(ip).get(_MANAGED_BY) != _ALLOCATOR:
        return None
    try:
        return ip_address(name_of(ip))
    except ValueError:
        return None


def containing(address: Address, cidrs: Iterable[Json]) -> list[str]:
    """Return the names of ServiceCIDRs that contain the address."""
    return [name_of(cidr) for cidr in cidrs if any(address in network for network in networks_of(cidr))]


def overlapping(cidr: Json, cidrs: Iterable[Json]) -> list[str]:
    """Return the names of ServiceCIDRs that overlap `cidr`."""
    mine = networks_of(cidr)
    return [name_of(cidr) for cidr in cidrs if any(a.overlaps(b) for a in mine for b in networks_of(cidr))]


def is_needed(cidr: Json, cidrs: list[Json], ips: Iterable[Json]) -> bool:
    """Return whether an allocated address is in no other ServiceCIDR."""
    if all(_parents(network, cidr, cidrs) for network in networks_of(cidr)):
        return False
    used = (address for ip in ips if (address := address_of(ip)) is not None)
    return any(containing(address, cidrs) == [name_of(cidr)] for address in used)


def _parents(network: Network, cidr: Json, cidrs: list[Json]) -> list[str]:
    others = (other for other in cidrs if name_of(other) != name_of(cidr))
    return [
        name_of(other)
        for other in others
        if any(
            (outer.version == network.version and outer.overlaps(network) and outer.prefixlen <= network.prefixlen)
            for outer in networks_of(other)
        )
    ]
