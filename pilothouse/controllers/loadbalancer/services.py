"""service-lb-controller: allocates an address of the configured range for each LoadBalancer service."""

from __future__ import annotations

import asyncio
import ipaddress

from pilothouse.client.cache.handlers import ResourceEventHandlerFuncs
from pilothouse.client.cache.keys import deletion_handling_key, meta_namespace_key
from pilothouse.client.cache.shared_informer import wait_for_cache_sync
from pilothouse.client.controller import Controller
from pilothouse.client.events.event import NORMAL, WARNING, EventSource
from pilothouse.client.events.recorder import EventRecorder
from pilothouse.client.rest.options import PatchType
from pilothouse.controllers.context import ControllerContext
from pilothouse.controllers.resources import SERVICES
from pilothouse.kinds.deletion import is_deleting
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json, items, metadata, name_of, namespace_of, part
from pilothouse.machinery.status_error import PilothouseError, StatusError

FINALIZER = "service.kubernetes.io/load-balancer-cleanup"
_NAME = "service"
_FIRST_DELAY, _LAST_DELAY = 5.0, 300.0


async def run(context: ControllerContext) -> None:
    await _ServiceLoadBalancers(context).run()


class _ServiceLoadBalancers:
    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._services = context.informer(SERVICES)
        self._pool = AddressPool(context.config.simulated_load_balancer_range)
        self._queue = context.queue(_NAME, str, first_delay=_FIRST_DELAY, max_delay=_LAST_DELAY)
        self._recorder = EventRecorder(context.client, EventSource("service-controller"), clock=context.clock)

    async def run(self) -> None:
        await wait_for_cache_sync(self._services)
        for service in self._services.indexer.list():
            if has_load_balancer(service):
                for address in addresses_of(service):
                    if self._pool.contains(address) and not self._pool.owner(address):
                        self._pool.take(meta_namespace_key(service), address)
        self._services.add_event_handler(
            ResourceEventHandlerFuncs(
                add=self._changed,
                update=lambda old, new: self._changed(new),
                delete=lambda service: self._pool.release(deletion_handling_key(service)),
            )
        )
        services = Controller(_NAME, self._sync, queue=self._queue, clock=self._context.clock)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(services.run())
            tasks.create_task(self._recorder.run())

    def _changed(self, service: Json) -> None:
        if needs_cleanup(service) or (wants_load_balancer(service) and not self._is_done(service)):
            self._queue.add(meta_namespace_key(service))

    def _is_done(self, service: Json) -> bool:
        """Return whether the service has the finalizer and only addresses of its own."""
        key, addresses = meta_namespace_key(service), addresses_of(service)
        is_own = bool(addresses) and all(self._pool.owner(address) == key for address in addresses)
        return is_own and FINALIZER in _finalizers(service)

    async def _sync(self, key: str) -> None:
        service = self._services.indexer.get_by_key(key)
        if service is None:
            return
        try:
            if needs_cleanup(service):
                self._recorder.event(service, NORMAL, "DeletingLoadBalancer", "Deleting load balancer")
                await self._patch(service, {"$deleteFromPrimitiveList/finalizers": [FINALIZER]}, {"ingress": None})
                self._pool.release(meta_namespace_key(service))
                self._recorder.event(service, NORMAL, "DeletedLoadBalancer", "Deleted load balancer")
            elif wants_load_balancer(service) and not self._is_done(service):
                await self._ensure(service)
        except NotFound:
            return
        except (StatusError, NoAddressLeft) as error:
            self._recorder.event(service, WARNING, "SyncLoadBalancerFailed", f"Error syncing load balancer: {error}")
            raise

    async def _ensure(self, service: Json) -> None:
        """Allocate an address and write the status. Raises NoAddressLeft or StatusError."""
        self._recorder.event(service, NORMAL, "EnsuringLoadBalancer", "Ensuring load balancer")
        held = [held for held in addresses_of(service) if self._pool.owner(held) == meta_namespace_key(service)]
        wanted = next(iter(held), service["spec"].get("loadBalancerIP") or "")
        try:
            address = self._pool.take(meta_namespace_key(service), wanted)
        except NoAddressLeft as error:
            raise NoAddressLeft(f"failed to ensure load balancer: {error}") from error
        ingress = [{"ip": address, "ipMode": "VIP"}]
        await self._patch(service, {"finalizers": [FINALIZER]}, {"ingress": ingress})
        self._recorder.event(service, NORMAL, "EnsuredLoadBalancer", "Ensured load balancer")

    async def _patch(self, service: Json, meta: Json, load_balancer: Json) -> None:
        services = self._context.client.for_resource(SERVICES, namespace=namespace_of(service))
        patch = {"metadata": meta, "status": {"loadBalancer": load_balancer}}
        await services.patch(name_of(service), patch, PatchType.STRATEGIC, subresource="status")


def wants_load_balancer(service: Json) -> bool:
    """Return whether the service needs an address; services with loadBalancerClass are ignored."""
    spec = service.get("spec") or {}
    wants = spec.get("type") == "LoadBalancer" and spec.get("loadBalancerClass") is None
    return wants and not is_deleting(service)


def needs_cleanup(service: Json) -> bool:
    spec = service.get("spec") or {}
    if FINALIZER not in _finalizers(service) or spec.get("loadBalancerClass") is not None:
        return False
    return is_deleting(service) or spec.get("type") != "LoadBalancer"


def has_load_balancer(service: Json) -> bool:
    return FINALIZER in _finalizers(service) and part(service, "spec").get("loadBalancerClass") is None


def addresses_of(service: Json) -> list[str]:
    ingress = items(service, "status", "loadBalancer", "ingress")
    return [entry["ip"] for entry in ingress if entry.get("ip")]


def _finalizers(service: Json) -> list[str]:
    return metadata(service).get("finalizers") or []


class NoAddressLeft(PilothouseError):
    """All addresses of the range are allocated."""


class AddressPool:
    """Pool of addresses. The last address serves all ingresses; the others are allocated lowest first.

    Allocations are restored from services, so addresses survive a restart.
    """

    def __init__(self, cidr: str) -> None:
        """Raises ValueError if `cidr` is invalid."""
        self._network = ipaddress.ip_network(cidr)
        self._owners: dict[str, str] = {}
        alone = self._network.num_addresses <= 2
        ends = (0, 0) if alone or self._network.version == 6 else (1, 1)
        self._first, self._last = ends[0], self._network.num_addresses - 1 - ends[1]

    @property
    def of_ingresses(self) -> str:
        return str(self._network[self._last])

    def owner(self, address: str) -> str:
        return self._owners.get(address, "")

    def contains(self, address: str) -> bool:
        """Return whether the address can be allocated."""
        try:
            return ipaddress.ip_address(address) in self._network and address != self.of_ingresses
        except ValueError:
            return False

    def take(self, owner: str, wanted: str = "") -> str:
        """Allocate and return an address for the owner: `wanted` if available, else the lowest free one.

        Raises NoAddressLeft.
        """
        if wanted and self.contains(wanted) and self._owners.setdefault(wanted, owner) == owner:
            return wanted
        for number in range(self._first, self._last):
            address = str(self._network[number])
            if address not in self._owners:
                self._owners[address] = owner
                return address
        raise NoAddressLeft(f"no address is left in {self._network}")

    def release(self, owner: str) -> None:
        for address in [held for held, held_by in self._owners.items() if held_by == owner]:
            del self._owners[address]
