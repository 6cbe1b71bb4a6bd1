"""The endpoints of a slice: addresses of its type, where they are, and the hints for who should use them."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.kube.validation.addresses import IPV4, IPV6, endpoint_ip, ip_family, legacy_ip
from pilothouse.kube.validation.domains import fully_qualified_domain_name
from pilothouse.kube.validation.fields import Rule, dns_label, dns_subdomain, follow
from pilothouse.machinery.field import Errors, Path, duplicate, internal, invalid, required, too_many
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.addresses import is_valid_ip
from pilothouse.machinery.validation.labels import validate_labels
from pilothouse.machinery.validation.names import is_dns1123_subdomain, is_valid_label_value

MAX_ENDPOINTS = 1000
MAX_ADDRESSES = 100
MAX_TOPOLOGY_LABELS = 16
MAX_HINTS = 8

_ZONE_LABEL = "topology.kubernetes.io/zone"


def validate_endpoints(endpoints: list[Json], address_type: str, path: Path) -> Errors:
    if len(endpoints) > MAX_ENDPOINTS:
        yield too_many(path, len(endpoints), MAX_ENDPOINTS)
        return
    for position, endpoint in enumerate(endpoints):
        at = path.index(position)
        yield from _validate_addresses(endpoint.get("addresses") or [], address_type, at.child("addresses"))
        if endpoint.get("nodeName") is not None:
            yield from dns_subdomain(endpoint["nodeName"], at.child("nodeName"))
        yield from _validate_topology(endpoint.get("deprecatedTopology") or {}, at.child("deprecatedTopology"))
        if endpoint.get("hostname") is not None:
            yield from dns_label(endpoint["hostname"], at.child("hostname"))
        if endpoint.get("hints") is not None:
            yield from _validate_hints(endpoint["hints"], at.child("hints"))


def _validate_addresses(addresses: list[str], address_type: str, path: Path) -> Errors:
    if not addresses:
        yield required(path, "must contain at least 1 address")
    elif len(addresses) > MAX_ADDRESSES:
        yield too_many(path, len(addresses), MAX_ADDRESSES)
    for position, address in enumerate(addresses):
        if address_type in (IPV4, IPV6):
            at = path.index(position)
            wrong = list(legacy_ip(at, address) if address_type == IPV4 else is_valid_ip(at, address))
            yield from wrong
            if not wrong:
                if ip_family(address) != address_type:
                    yield invalid(path, address, f"must be an {address_type} address")
                yield from endpoint_ip(address, at)
        elif address_type == "FQDN":
            yield from fully_qualified_domain_name(address, path.index(position))


def _validate_topology(topology: dict[str, str], path: Path) -> Errors:
    if len(topology) > MAX_TOPOLOGY_LABELS:
        yield too_many(path, len(topology), MAX_TOPOLOGY_LABELS)
    yield from validate_labels(topology, path)
    if _ZONE_LABEL in topology:
        yield internal(path.key(_ZONE_LABEL), "reserved key was not removed in conversion")


def _validate_hints(hints: Json, path: Path) -> Errors:
    zones, nodes = hints.get("forZones") or [], hints.get("forNodes") or []
    if len(zones) > MAX_HINTS:
        yield too_many(path.child("forZones"), len(zones), MAX_HINTS)
        return
    yield from _validate_names(zones, path.child("forZones"), is_valid_label_value)
    if len(nodes) > MAX_HINTS:
        yield too_many(path.child("forNodes"), len(nodes), MAX_HINTS)
        return
    yield from _validate_names(nodes, path.child("forNodes"), is_dns1123_subdomain)


def _validate_names(hints: Iterable[Json], path: Path, rule: Rule) -> Errors:
    seen: set[str] = set()
    for position, hint in enumerate(hints):
        at, name = path.index(position).child("name"), hint.get("name") or ""
        if name in seen:
            yield duplicate(at, name)
        seen.add(name)
        yield from follow(rule, name, at)
