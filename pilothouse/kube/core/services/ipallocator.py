"""Why an address could not be allocated, in the words that end up in the service's field error."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ipaddress import IPv4Address, IPv6Address
from random import Random, SystemRandom

from prometheus_client import Counter, Gauge, Histogram

from pilothouse.apiserver.metrics import REGISTRY
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kube.networking.ip_addresses import FAMILY_LABEL, IP_ADDRESSES, MANAGED_BY_LABEL
from pilothouse.kube.served import tracked_access
from pilothouse.kube.validation.addresses import IPV4, IPV6, ip_family
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import AlreadyExists
from pilothouse.machinery.objects import Json, name_of, namespace_of
from pilothouse.machinery.status_error import StatusError
from pilothouse.machinery.validation.addresses import Address, format_ip, parse_cidr_sloppy, parse_ip_sloppy


class AllocationError(Exception):
    """An address cannot be had."""


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

_LEAST_OFFSET, _MOST_OFFSET, _OFFSET_STEP = 16, 256, 16


@dataclass(frozen=True, slots=True)
class AddressRange:
    """`first` and `last` are the first and the last address that can be handed out; a range may have none."""

    cidr: str
    family: str
    network: int
    first: int
    last: int
    lower_band: int
    """How many addresses the lower band has."""

    @classmethod
    def of(cls, text: str) -> AddressRange | None:
        """Return the range of a CIDR; None if the text is no CIDR, or too large a one."""
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
        return cls(text, family, network, network + 1, last, _offset(size))

    def __contains__(self, address: Address) -> bool:
        return self._kind is type(address) and self.first <= int(address) <= self.last

    @property
    def size(self) -> int:
        """The number of addresses that can be handed out."""
        return max(self.last - self.first + 1, 0)

    @property
    def network_address(self) -> str:
        return str(self._kind(self.network))

    def candidates(self, random: Random) -> Iterator[str]:
        """Every address once: each band from a random start onwards, the upper band first."""
        boundary = self.first + self.lower_band
        for low, high in ((boundary, self.last), (self.first, boundary - 1)):
            for number in _from_anywhere(low, high, random):
                yield str(self._kind(number))

    @property
    def _kind(self) -> type[IPv4Address] | type[IPv6Address]:
        return IPv4Address if self.family == IPV4 else IPv6Address


def _offset(size: int) -> int:
    if size <= _LEAST_OFFSET:
        return 0
    return min(max(size // _OFFSET_STEP, _LEAST_OFFSET), _MOST_OFFSET)


def _from_anywhere(low: int, high: int, random: Random) -> Iterator[int]:
    if low > high:
        return
    start = random.randint(low, high)
    yield from range(start, high + 1)
    yield from range(low, start)


STATIC = "static"
DYNAMIC = "dynamic"
"""Whether the client named the address."""

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
def measured(each: AddressRange, scope: str) -> Iterator[None]:
    """Count the block as one allocation from the range, as a failed one if it raises."""
    try:
        with _DURATION.labels(each.cidr).time():
            yield
    except AllocationError:
        _ERRORS.labels(each.cidr, scope).inc()
        raise
    _ALLOCATIONS.labels(each.cidr, scope).inc()
    _ALLOCATED.labels(each.cidr).inc()
    _AVAILABLE.labels(each.cidr).dec()


def released(each: AddressRange) -> None:
    _ALLOCATED.labels(each.cidr).dec()
    _AVAILABLE.labels(each.cidr).inc()


def set_allocated_ips(each: AddressRange, taken: int) -> None:
    """The truth, whatever others have allocated and released since."""
    _ALLOCATED.labels(each.cidr).set(taken)
    _AVAILABLE.labels(each.cidr).set(each.size - taken)


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
