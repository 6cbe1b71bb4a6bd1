"""Allocation and release of cluster IPs for one write of a service.

create                        allocate an address per family
ExternalName → other type     allocate an address per family
other type → ExternalName     release all addresses
single stack → dual stack     allocate the second address
dual stack → single stack     release the second address
"""

from __future__ import annotations

from pilothouse.kube.core.services import traits
from pilothouse.kube.core.services.allocation.ip_families import keeps_dual_stack_preference
from pilothouse.kube.core.services.allocation.operation import AllocationOperation
from pilothouse.kube.core.services.ipallocator import AllocationError, RangeFull, ServiceIPAllocator
from pilothouse.machinery.errors import Invalid
from pilothouse.machinery.field import invalid, root
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupKind
from pilothouse.machinery.objects import Json, name_of
from pilothouse.machinery.server_errors import InternalError
from pilothouse.machinery.validation.addresses import format_ip, parse_ip_sloppy


class ClusterIPOperation(AllocationOperation[ServiceIPAllocator, str]):
    """The cluster IPs of one write."""

    async def create(self, service: Json) -> None:
        """Raises Invalid, InternalError."""
        if traits.type_of(service) == traits.EXTERNAL_NAME or _is_headless(service):
            return
        await self._take(service, range(len(traits.ip_families_of(service))))

    async def update(self, service: Json, old: Json) -> None:
        """Raises Invalid, InternalError."""
        if keeps_dual_stack_preference(service, old):
            return
        if traits.type_of(old) == traits.EXTERNAL_NAME:
            await self.create(service)
        elif _is_headless(old):
            return
        elif traits.type_of(service) == traits.EXTERNAL_NAME:
            self._given_up += traits.cluster_ips_of(old)
        else:
            families, before = len(traits.ip_families_of(service)), len(traits.ip_families_of(old))
            if (before, families) == (1, 2):
                await self._take(service, range(1, 2))
            elif (before, families) == (2, 1):
                self._given_up += traits.cluster_ips_of(old)[1:]

    async def _take(self, service: Json, positions: range) -> None:
        """Allocate the addresses at these positions of clusterIPs: the requested address, or any free address."""
        families, ips = traits.ip_families_of(service), list(traits.cluster_ips_of(service))
        ips += [""] * (len(families) - len(ips))
        for position in positions:
            ips[position] = await self._take_one(service, families[position], ips[position])
        service["spec"]["clusterIPs"] = ips
        service["spec"]["clusterIP"] = ips[0]

    async def _take_one(self, service: Json, family: str, ip: str) -> str:
        """Allocate the canonical form of the address, but return the address as written."""
        try:
            allocated = await (self._named(service, ip) if ip else self._next(service, family))
        except RangeFull as error:
            reason = f"failed to allocate a serviceIP for Service {quote(name_of(service))}: {error}"
            raise InternalError.of(reason) from None
        except AllocationError as error:
            reason = f"failed to allocate IP {ip}: {error}" if ip else f"failed to allocate IP: {error}"
            # Upstream prints an empty string for each address that is not yet allocated.
            printed = list(traits.cluster_ips_of(service))
            printed += [""] * (len(traits.ip_families_of(service)) - len(printed))
            raise Invalid.of(
                GroupKind("", "Service"), name_of(service), [invalid(root("spec", "clusterIPs"), printed, reason)]
            ) from None
        if not self._dry_run:
            self._taken.append(allocated)
        return ip or allocated

    async def _named(self, service: Json, ip: str) -> str:
        address = parse_ip_sloppy(ip)
        if address is None:
            raise InternalError.of(f"failed to parse service IP {quote(ip)}")
        if self._dry_run:
            await self._allocator.try_allocate(address)
        else:
            await self._allocator.allocate(service, address)
        return format_ip(address)

    async def _next(self, service: Json, family: str) -> str:
        if self._dry_run:
            return await self._allocator.try_allocate_next(family)
        return await self._allocator.allocate_next(service, family)

    async def _release(self, allocated: list[str]) -> None:
        if self._dry_run:
            return
        for ip in allocated:
            await self._allocator.release(canonical(ip))


def canonical(ip: str) -> str:
    """Return the name of the IPAddress for an address in any notation."""
    address = parse_ip_sloppy(ip)
    return ip if address is None else format_ip(address)


def _is_headless(service: Json) -> bool:
    return traits.cluster_ips_of(service)[:1] == [traits.NO_ADDRESS]
