"""Desired Endpoints of a service, with canonical and bounded subsets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import ceil
from typing import Any, TypeAlias

from pilothouse.controllers.endpointslice import endpoint
from pilothouse.controllers.endpointslice.service_syncs import with_trigger_time
from pilothouse.kinds.pods import is_ready, node_name
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.event_loop import yield_periodically
from pilothouse.machinery.objects import Json, annotations_of, items, labels_of, metadata, name_of, part, text

CONTROLLER = "endpoint-controller"
MANAGED_BY = "endpoints.kubernetes.io/managed-by"
OVER_CAPACITY = "endpoints.kubernetes.io/over-capacity"
MAX_CAPACITY = 1000
_AddressKey: TypeAlias = tuple[str, str]
_PortKey: TypeAlias = tuple[Any, ...]
_NO_PORT: _PortKey = ()


async def desired_subsets(service: Json, selected: Sequence[Json]) -> list[Json]:
    subsets: list[Json] = []
    async for pod in yield_periodically(selected):
        if endpoint.should_be_in_endpoints(pod, include_terminating=endpoint.publishes_not_ready(service)):
            subsets += _subsets_of(pod, service)
    return repack(subsets)


def needs_update(current: Json, subsets: list[Json], service: Json) -> bool:
    old = current.get("subsets") or []
    annotations = annotations_of(current)
    return not (
        (is_same(old, subsets) or is_same(repack(old), subsets))
        and _has_labels_of(current, service)
        and number_of_addresses(old) <= MAX_CAPACITY
        and OVER_CAPACITY not in annotations
    )


def endpoints_with(current: Json | None, subsets: list[Json], service: Json, trigger_time: str) -> Json:
    """Return the Endpoints to write; without resourceVersion if they do not exist yet."""
    base: Json = current or {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": name_of(service)}}
    annotations = with_trigger_time(annotations_of(base), trigger_time)
    annotations.pop(OVER_CAPACITY, None)
    if number_of_addresses(subsets) > MAX_CAPACITY:
        subsets, annotations = truncated(subsets), annotations | {OVER_CAPACITY: "truncated"}
    labels = {name: value for name, value in labels_of(service).items() if name != endpoint.HEADLESS}
    labels |= ({endpoint.HEADLESS: ""} if endpoint.is_headless(service) else {}) | {MANAGED_BY: CONTROLLER}
    meta = metadata(base) | {"labels": labels, "annotations": annotations}
    return {**base, "metadata": meta, "subsets": subsets}


def _has_labels_of(current: Json, service: Json) -> bool:
    own = (endpoint.HEADLESS, MANAGED_BY)
    current_labels = {name: value for name, value in labels_of(current).items() if name not in own}
    service_labels = {name: value for name, value in labels_of(service).items() if name not in own}
    return current_labels == service_labels and labels_of(current).get(MANAGED_BY) == CONTROLLER


def _subsets_of(pod: Json, service: Json) -> Iterator[Json]:
    """Yield a subset per port; for a headless service without ports, one subset without ports."""
    ips = endpoint.pod_addresses(pod, _family(service, pod))
    if not ips:
        return
    address: Json = {"ip": ips[0], "targetRef": endpoint.reference_to_pod(pod)}
    named = {"nodeName": node_name(pod), "hostname": endpoint.hostname_in(pod, service)}
    address |= {name: value for name, value in named.items() if value}
    kind = "addresses" if endpoint.publishes_not_ready(service) or is_ready(pod) else "notReadyAddresses"
    ports = items(service, "spec", "ports")
    if not ports and endpoint.is_headless(service):
        yield {kind: [address]}
    for port in ports:
        if (number := endpoint.find_port(pod, port)) is not None:
            endpoint_port = {"name": port.get("name"), "port": number, "protocol": port.get("protocol") or "TCP"}
            endpoint_port["appProtocol"] = port.get("appProtocol")
            yield {kind: [address], "ports": [{name: value for name, value in endpoint_port.items() if value}]}


def _family(service: Json, pod: Json) -> str:
    """Return the service's primary IP family. Without ipFamilies: the family of clusterIP, or of the pod if
    headless."""
    spec = service.get("spec") or {}
    if families := spec.get("ipFamilies"):
        return str(families[0])
    own = part(pod, "status").get("podIP") if endpoint.is_headless(service) else spec.get("clusterIP")
    return endpoint.family_of_text(own or "")


def repack(subsets: Iterable[Json]) -> list[Json]:
    """Return the canonical form: addresses with the same ports form one subset, so equal endpoints yield equal subsets.

    An address that is not ready for a port in one subset is not ready for that port.

    [{10.0.0.1: 80} {10.0.0.1: 443} {10.0.0.2: 80}] → [{10.0.0.1: 443} {10.0.0.1 10.0.0.2: 80}]
    """
    addresses: dict[_AddressKey, Json] = {}
    ports: dict[_PortKey, Json] = {}
    readiness: dict[_PortKey, dict[_AddressKey, bool]] = {}
    for address in _flat(subsets):
        key, port = _address_key(address.address), _port_key(address.port)
        addresses.setdefault(key, address.address)
        ports.setdefault(port, address.port)
        of_port = readiness.setdefault(port, {})
        of_port[key] = of_port.get(key, True) and address.ready
    groups: dict[frozenset[tuple[_AddressKey, bool]], list[_PortKey]] = {}
    for port, of_port in readiness.items():
        groups.setdefault(frozenset(of_port.items()), []).append(port)
    subsets_by_group = [
        _subset(group, addresses, [ports[key] for key in sorted(keys) if key]) for group, keys in groups.items()
    ]
    return sorted(subsets_by_group, key=_order)


def is_same(one: Iterable[Json], other: Iterable[Json]) -> bool:
    """Compare subsets, ignoring resourceVersions in targetRef."""
    return [_comparable(subset) for subset in one] == [_comparable(subset) for subset in other]


def number_of_addresses(subsets: Iterable[Json]) -> int:
    return sum(len(subset.get("addresses") or ()) + len(subset.get("notReadyAddresses") or ()) for subset in subsets)


def truncated(subsets: list[Json]) -> list[Json]:
    """Return subsets truncated to the maximum number of addresses: ready first, proportionally per subset."""
    ready = sum(len(subset.get("addresses") or ()) for subset in subsets)
    name = "addresses" if ready > MAX_CAPACITY else "notReadyAddresses"
    room = MAX_CAPACITY if ready > MAX_CAPACITY else MAX_CAPACITY - ready
    total, left, cut = sum(len(subset.get(name) or ()) for subset in subsets), room, []
    for subset in subsets:
        addresses = subset.get(name) or []
        taken = addresses[: min(left, ceil(len(addresses) / total * room))]
        left -= len(taken)
        rest = {field: value for field, value in subset.items() if field not in (name, "notReadyAddresses")}
        cut.append(rest | ({name: taken} if taken else {}))
    return [subset for subset in cut if number_of_addresses([subset])]


@dataclass(frozen=True, slots=True)
class _Flat:
    address: Json
    port: Json
    ready: bool


def _flat(subsets: Iterable[Json]) -> Iterator[_Flat]:
    for subset in subsets:
        ports: list[Json] = subset.get("ports") or [{}]
        for port in ports:
            yield from (_Flat(address, port, True) for address in subset.get("addresses") or ())
            yield from (_Flat(address, port, False) for address in subset.get("notReadyAddresses") or ())


def _subset(group: frozenset[tuple[_AddressKey, bool]], addresses: dict[_AddressKey, Json], ports: list[Json]) -> Json:
    parts = {
        "addresses": [addresses[key] for key, ready in sorted(group) if ready],
        "notReadyAddresses": [addresses[key] for key, ready in sorted(group) if not ready],
        "ports": ports,
    }
    return {name: value for name, value in parts.items() if value}


def _address_key(address: Json) -> _AddressKey:
    return address.get("ip") or "", text(address, "targetRef", "uid")


def _port_key(port: Json) -> _PortKey:
    if not port:
        return _NO_PORT
    return port.get("name") or "", port.get("port") or 0, port.get("protocol") or "TCP", port.get("appProtocol") or ""


def _order(subset: Json) -> tuple[Any, ...]:
    addresses = [*(subset.get("addresses") or ()), *(subset.get("notReadyAddresses") or ())]
    return [_port_key(port) for port in subset.get("ports") or ()], [_address_key(address) for address in addresses]


def _comparable(subset: Json) -> Json:
    comparable: Json = {"ports": [_port_key(port) for port in subset.get("ports") or ()]}
    for name in ("addresses", "notReadyAddresses"):
        comparable[name] = [_without_version(address) for address in subset.get(name) or ()]
    return comparable


def _without_version(address: Json) -> tuple[Any, ...]:
    target = {name: value for name, value in (address.get("targetRef") or {}).items() if name != "resourceVersion"}
    return address.get("ip"), address.get("hostname") or "", address.get("nodeName"), target
