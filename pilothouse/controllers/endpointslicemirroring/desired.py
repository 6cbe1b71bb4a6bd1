"""Desired mirrored endpoints: one slice per subset and address type."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from pilothouse.controllers.endpoint.subsets import number_of_addresses, repack
from pilothouse.controllers.endpointslice.endpoint import EndpointKey, PortsKey, endpoint_key, ports_key
from pilothouse.controllers.endpointslice.pods import IPV4, IPV6, family_of
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.addresses import format_ip, parse_ip_sloppy


@dataclass(frozen=True, slots=True)
class GroupKey:
    address_type: str
    ports: PortsKey


@dataclass(slots=True)
class DesiredMirror:
    groups: dict[GroupKey, dict[EndpointKey, Json]] = field(default_factory=dict)
    ports: dict[GroupKey, list[Json]] = field(default_factory=dict)
    invalid: int = 0
    skipped: int = 0
    """Number of addresses not mirrored, because they are invalid or above the limit."""


def desired_endpoints(endpoints: Json, limit: int) -> DesiredMirror:
    """Return the endpoints to mirror: at most `limit` addresses per subset, ready first."""
    desired = DesiredMirror()
    for subset in repack(endpoints.get("subsets") or ()):
        ports = sorted((_slice_port(port) for port in subset.get("ports") or ()), key=lambda port: ports_key([port]))
        for family in (IPV4, IPV6):
            desired.groups.setdefault(GroupKey(family, ports_key(ports)), {})
            desired.ports.setdefault(GroupKey(family, ports_key(ports)), ports)
        desired.skipped += number_of_addresses([subset]) - _add(subset, ports_key(ports), desired, limit)
    return desired


def _add(subset: Json, ports: PortsKey, desired: DesiredMirror, limit: int) -> int:
    """Add at most `limit` endpoints of the subset; return the number added."""
    added = 0
    for endpoint in _endpoints(subset):
        if added >= limit:
            break
        address = parse_ip_sloppy(endpoint["addresses"][0])
        if address is None:
            desired.invalid += 1
            continue
        endpoint["addresses"] = [format_ip(address)]
        desired.groups[GroupKey(family_of(address), ports)][endpoint_key(endpoint)] = endpoint
        added += 1
    return added


def _endpoints(subset: Json) -> Iterator[Json]:
    for name, ready in (("addresses", True), ("notReadyAddresses", False)):
        for address in subset.get(name) or ():
            made: Json = {"addresses": [address.get("ip") or ""], "conditions": {"ready": ready}}
            kept = {each: address.get(each) for each in ("targetRef", "nodeName", "hostname")}
            yield made | {each: value for each, value in kept.items() if value}


def _slice_port(port: Json) -> Json:
    made = {"name": port.get("name") or "", "port": port.get("port"), "protocol": port.get("protocol") or "TCP"}
    protocol = port.get("appProtocol")
    return made | ({} if protocol is None else {"appProtocol": protocol})
