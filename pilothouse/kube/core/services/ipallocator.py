"""Cluster IP allocation: creating the IPAddress object allocates the address, deleting the object releases the address.

Guarantees: an address is never allocated twice, even by several servers on one store. The watch cache only serves to
skip allocated addresses.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ipaddress import IPv4Address, IPv6Address
from random import Random, SystemRandom

from prometheus_client import Counter, Gauge, Histogram

from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.tallies import REGISTRY
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kube.core.services.allocation.operation import lower_band
from pilothouse.kube.networking.ip_addresses import FAMILY_LABEL, IP_ADDRESSES, MANAGED_BY_LABEL
from pilothouse.kube.served import tracked_access
from pilothouse.kube.validation.addresses import IPV4, IPV6, ip_family
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import AlreadyExists
from pilothouse.machinery.objects import Json, name_of, namespace_of
from pilothouse.machinery.status_error import StatusError
from pilothouse.machinery.validation.addresses import Address, format_ip, parse_cidr_sloppy, parse_ip_sloppy


class AllocationError(Exception):
    """An address cannot be allocated; the message becomes part of the service's field error."""


class RangeFull(AllocationError):
    def __init__(self) -> None:
        super().__init__("range is full")


class AlreadyAllocated(AllocationError):
    def __init__(self) -> None:
        super().__init__("provided IP is already allocated")


class NetworkMismatch(AllocationError):
    def __init__(self) -> None:
        super().__init__("the provided network does not match the current range")


class AllocatorNotReady(AllocationError):
    def __init__(self) -> None:
        super().__init__("allocator not ready")


class NotInRange(AllocationError):
    def __init__(self, ip: str, valid: str) -> None:
        super().__init__(f"the provided IP ({ip}) is not in the valid range. The range of valid IPs is {valid}")


SHORTEST_IPV6_PREFIX = 64


@dataclass(frozen=True, slots=True)
class AddressRange:
    """The addresses of a CIDR in two bands. Dynamic allocation prefers the upper band, clients should choose from the
    lower.

        10.0.0.0/24:  .0 the network | .1 to .16 lower band | .17 to .254 upper band | .255 broadcast

    `first` and `last` are the first and last allocatable address. A range may be empty.
    """

    cidr: str
    family: str
    network: int
    first: int
    last: int
    lower_band: int
    """Number of addresses in the lower band."""

    @classmethod
    def of(cls, text: str) -> AddressRange | None:
        """Return the range of a CIDR, or None for an invalid or too large CIDR."""
        cidr = parse_cidr_sloppy(text)
        if cidr is None:
            return None
        bits = cidr.address.max_prefixlen
        if bits == 128 and cidr.bits < SHORTEST_IPV6_PREFIX:
            return None
        size = 1 << (bits - cidr.bits)
        network = int(cidr.address) // size * size
        last = network + size - (2 if bits == 32 else 1)
        family = IPV4 if bits == 32 else IPV6
        return cls(text, family, network, network + 1, last, lower_band(size, least=16, most=256, step=16))

    def __contains__(self, address: Address) -> bool:
        return self._kind is type(address) and self.first <= int(address) <= self.last

    @property
    def size(self) -> int:
        """Number of allocatable addresses."""
        return max(self.last - self.first + 1, 0)

    @property
    def network_address(self) -> str:
        return str(self._kind(self.network))

    def candidates(self, random: Random) -> Iterator[str]:
        """Yield every address once: the upper band first, each band from a random start."""
        boundary = self.first + self.lower_band
        for low, high in ((boundary, self.last), (self.first, boundary - 1)):
            for number in _from_anywhere(low, high, random):
                yield str(self._kind(number))

    @property
    def _kind(self) -> type[IPv4Address] | type[IPv6Address]:
        return IPv4Address if self.family == IPV4 else IPv6Address


def _from_anywhere(low: int, high: int, random: Random) -> Iterator[int]:
    if low > high:
        return
    start = random.randint(low, high)
    yield from range(start, high + 1)
    yield from range(low, start)


STATIC = "static"
DYNAMIC = "dynamic"
"""Scopes of an allocation: a static address is chosen by the client."""

_PREFIX = "kube_apiserver_clusterip_allocator"
_ALLOCATED = Gauge(
    f"{_PREFIX}_allocated_ips",
    "[ALPHA] Gauge measuring the number of allocated IPs for Services",
    ("cidr",),
    registry=REGISTRY,
)
_AVAILABLE = Gauge(
    f"{_PREFIX}_available_ips",
    "[ALPHA] Gauge measuring the number of available IPs for Services",
    ("cidr",),
    registry=REGISTRY,
)
_ALLOCATIONS = Counter(
    f"{_PREFIX}_allocation", "[ALPHA] Number of Cluster IPs allocations", ("cidr", "scope"), registry=REGISTRY
)
_ERRORS = Counter(
    f"{_PREFIX}_allocation_errors", "Addresses that could not be allocated.", ("cidr", "scope"), registry=REGISTRY
)
_DURATION = Histogram(
    f"{_PREFIX}_allocation_duration_seconds",
    "[ALPHA] Duration in seconds to allocate a Cluster IP by ServiceCIDR",
    ("cidr",),
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
    registry=REGISTRY,
)


@contextmanager
def measured(addresses: AddressRange, scope: str) -> Iterator[None]:
    """Count the block as an allocation from the range, or as an error if AllocationError is raised."""
    try:
        with _DURATION.labels(addresses.cidr).time():
            yield
    except AllocationError:
        _ERRORS.labels(addresses.cidr, scope).inc()
        raise
    _ALLOCATIONS.labels(addresses.cidr, scope).inc()
    _ALLOCATED.labels(addresses.cidr).inc()
    _AVAILABLE.labels(addresses.cidr).dec()


def released(addresses: AddressRange) -> None:
    _ALLOCATED.labels(addresses.cidr).dec()
    _AVAILABLE.labels(addresses.cidr).inc()


def set_allocated_ips(addresses: AddressRange, allocated: int) -> None:
    """Set the gauges to the actual number, including allocations of other servers."""
    _ALLOCATED.labels(addresses.cidr).set(allocated)
    _AVAILABLE.labels(addresses.cidr).set(addresses.size - allocated)


MANAGER = "ipallocator.k8s.io"

_log = logging.getLogger(__name__)


class ServiceIPAllocator:
    def __init__(self, cidrs: RegistryStore, addresses: RegistryStore, *, random: Random | None = None) -> None:
        self._cidrs = tracked_access(cidrs)
        self._addresses = tracked_access(addresses)
        self._random = random or SystemRandom()

    async def allocate(self, service: Json, address: Address) -> None:
        """Allocate this address. Raises NetworkMismatch, AlreadyAllocated."""
        for range_ in await self._ranges(ip_family(str(address))):
            if address in range_:
                with measured(range_, STATIC):
                    await self._take(service, format_ip(address))
                return
        raise NetworkMismatch

    async def allocate_next(self, service: Json, family: str) -> str:
        """Allocate any free address. Raises RangeFull."""
        for range_ in await self._ranges(family):
            for candidate in range_.candidates(self._random):
                if await self._addresses.registry.known("", candidate) is not None:
                    continue
                with suppress(AlreadyAllocated), measured(range_, DYNAMIC):
                    await self._take(service, candidate)
                    return candidate
        raise RangeFull

    async def try_allocate(self, address: Address) -> None:
        """Dry-run `allocate`, without a check of whether the address is free. Raises AllocatorNotReady, NotInRange."""
        first = await self._any_range(ip_family(str(address)))
        if address not in first:
            raise NotInRange(format_ip(address), first.cidr)

    async def try_allocate_next(self, family: str) -> str:
        """Dry-run `allocate_next`: return the network address, which is never allocated. Raises AllocatorNotReady."""
        return (await self._any_range(family)).network_address

    async def release(self, ip: str) -> None:
        """Release the address. Idempotent. Errors are logged; the repair cleans up."""
        try:
            await self._addresses.delete(ip)
            address = parse_ip_sloppy(ip)
            for range_ in await self._ranges(ip_family(ip)):
                if address is not None and address in range_:
                    released(range_)
        except StatusError as error:
            _log.error("error releasing ip %s: %s", ip, error)

    async def _ranges(self, family: str) -> list[AddressRange]:
        """Return the ranges of this family that are open for allocation."""
        cidrs = await self._cidrs.list()
        texts = dict.fromkeys(text for cidr in cidrs if _is_ready(cidr) for text in cidr["spec"].get("cidrs") or ())
        ranges = [AddressRange.of(text) for text in texts]
        return [range_ for range_ in ranges if range_ is not None and range_.family == family]

    async def _any_range(self, family: str) -> AddressRange:
        for range_ in await self._ranges(family):
            return range_
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
    """Report whether the ServiceCIDR is ready. Without a Ready condition, the CIDR is ready: a cluster may lack the
    controller."""
    if is_deleting(cidr):
        return False
    conditions = (cidr.get("status") or {}).get("conditions") or ()
    ready = next((condition for condition in conditions if condition.get("type") == "Ready"), {"status": "True"})
    return bool(ready.get("status") == "True")
