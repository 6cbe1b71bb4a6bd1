"""Hands out the addresses of all ServiceCIDRs. Who creates the IPAddress has the address; who deletes it gives it back.

Guarantees: an address is never handed out twice, by however many servers on one store; the watch cache is only asked
in order not to try addresses that are taken.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from random import Random, SystemRandom

from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kube.core.services.ipallocator.address_range import AddressRange
from pilothouse.kube.core.services.ipallocator.errors import (
    AllocationError,
    AllocatorNotReady,
    AlreadyAllocated,
    NetworkMismatch,
    NotInRange,
    RangeFull,
)
from pilothouse.kube.core.services.ipallocator.metrics import DYNAMIC, STATIC, measured, released
from pilothouse.kube.networking.ip_addresses import FAMILY_LABEL, IP_ADDRESSES, MANAGED_BY_LABEL
from pilothouse.kube.tracked_access import tracked_access
from pilothouse.kube.validation.addresses import ip_family
from pilothouse.machinery.errors import AlreadyExists
from pilothouse.machinery.objects import Json, name_of, namespace_of
from pilothouse.machinery.status_error import StatusError
from pilothouse.machinery.validation.addresses import Address, format_ip, parse_ip_sloppy

MANAGER = "ipallocator.k8s.io"

_log = logging.getLogger(__name__)


class ServiceIPAllocator:
    def __init__(self, cidrs: RegistryStore, addresses: RegistryStore, *, random: Random | None = None) -> None:
        self._cidrs = tracked_access(cidrs)
        self._addresses = tracked_access(addresses)
        self._random = random or SystemRandom()

    async def allocate(self, service: Json, address: Address) -> None:
        """Raises NetworkMismatch, AlreadyAllocated."""
        for each in await self._ranges(ip_family(str(address))):
            if address in each:
                with measured(each, STATIC):
                    await self._take(service, format_ip(address))
                return
        raise NetworkMismatch

    async def allocate_next(self, service: Json, family: str) -> str:
        """Raises RangeFull."""
        for each in await self._ranges(family):
            for candidate in each.candidates(self._random):
                if await self._addresses.registry.known("", candidate) is not None:
                    continue
                with suppress(AlreadyAllocated), measured(each, DYNAMIC):
                    await self._take(service, candidate)
                    return candidate
        raise RangeFull

    async def try_allocate(self, address: Address) -> None:
        """Dry-run `allocate`, without a look at whether the address is free. Raises AllocatorNotReady, NotInRange."""
        first = await self._any_range(ip_family(str(address)))
        if address not in first:
            raise NotInRange(format_ip(address), first.cidr)

    async def try_allocate_next(self, family: str) -> str:
        """A dry run of `allocate_next`: an address that nobody will ever get. Raises AllocatorNotReady."""
        return (await self._any_range(family)).network_address

    async def release(self, ip: str) -> None:
        """Giving back what nobody has is fine. A failure is left to the repair."""
        try:
            await self._addresses.delete(ip)
            address = parse_ip_sloppy(ip)
            for each in await self._ranges(ip_family(ip)):
                if address is not None and address in each:
                    released(each)
        except StatusError as error:
            _log.error("error releasing ip %s: %s", ip, error)

    async def _ranges(self, family: str) -> list[AddressRange]:
        """The ranges of this family that new addresses may come from."""
        cidrs = await self._cidrs.list()
        texts = dict.fromkeys(text for cidr in cidrs if _is_ready(cidr) for text in cidr["spec"].get("cidrs") or ())
        ranges = [AddressRange.of(text) for text in texts]
        return [each for each in ranges if each is not None and each.family == family]

    async def _any_range(self, family: str) -> AddressRange:
        for each in await self._ranges(family):
            return each
        raise AllocatorNotReady

    async def _take(self, service: Json, ip: str) -> None:
        try:
            await self._addresses.create(new_ip_address(ip, service))
        except AlreadyExists:
            raise AlreadyAllocated from None
        except StatusError as error:
            raise AllocationError(error.message) from error


def new_ip_address(ip: str, service: Json) -> Json:
    parent = {"resource": "services", "namespace": namespace_of(service), "name": name_of(service)}
    return {
        "kind": IP_ADDRESSES.names.kind,
        "apiVersion": IP_ADDRESSES.kind.api_version,
        "metadata": {"name": ip, "labels": {FAMILY_LABEL: ip_family(ip), MANAGED_BY_LABEL: MANAGER}},
        "spec": {"parentRef": parent},
    }


def _is_ready(cidr: Json) -> bool:
    """One that nobody has judged yet counts as ready, because there may be nobody who does."""
    if is_deleting(cidr):
        return False
    conditions = (cidr.get("status") or {}).get("conditions") or ()
    ready = next((each for each in conditions if each.get("type") == "Ready"), {"status": "True"})
    return bool(ready.get("status") == "True")
