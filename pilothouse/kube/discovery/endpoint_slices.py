"""EndpointSlices: addresses of one type, and ports with unique names."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.apiserver.registry.metadata import begin_generation
from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.kube.strategy import KubeStrategy
from pilothouse.kube.validation import fields
from pilothouse.kube.validation.addresses import IPV4, IPV6, endpoint_ip, ip_family, legacy_ip, warnings_for_ip
from pilothouse.kube.validation.domains import fully_qualified_domain_name
from pilothouse.machinery import field
from pilothouse.machinery.objects import Json, labels_of, metadata
from pilothouse.machinery.validation.addresses import is_valid_ip
from pilothouse.machinery.validation.immutable import semantically_equal, validate_declared_immutable
from pilothouse.machinery.validation.labels import validate_labels
from pilothouse.machinery.validation.names import is_dns1123_subdomain, is_valid_label_value

ADDRESS_TYPES = ("FQDN", "IPv4", "IPv6")
SERVICE_NAME_LABEL = "kubernetes.io/service-name"
"""Label with the name of the service."""
MANAGED_BY_LABEL = "endpointslice.kubernetes.io/managed-by"

_HOSTNAME_LABEL = "kubernetes.io/hostname"
_CAREFUL_MANAGERS = ("endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io")
"""Controllers known to write canonical addresses."""

_SHOWN = 3
MAX_PORTS = 20000

MAX_ENDPOINTS = 1000

MAX_ADDRESSES = 100

MAX_TOPOLOGY_LABELS = 16

MAX_HINTS = 8

_ZONE_LABEL = "topology.kubernetes.io/zone"


class EndpointSliceStrategy(KubeStrategy):
    def default(self, obj: Json) -> None:
        for port in obj.get("ports") or ():
            if port.get("name") is None:
                port["name"] = ""
            if port.get("protocol") is None:
                port["protocol"] = "TCP"

    def prepare_for_create(self, obj: Json) -> None:
        metadata(obj)["generation"] = 1
        _drop_topology(obj, None)

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        """Increment the generation on label changes, too: consumers select slices by labels."""
        if not semantically_equal(_content(obj), _content(old)):
            begin_generation(obj, old)
        _drop_topology(obj, old)

    def validate(self, obj: Json) -> field.Errors:
        yield from self._validate(obj)
        yield from _validate_endpoints(obj)

    def validate_update(self, obj: Json, old: Json) -> field.Errors:
        yield from self._validate(obj)
        # Stored endpoints may keep faults of older rules.
        if not semantically_equal(obj.get("endpoints"), old.get("endpoints")):
            yield from _validate_endpoints(obj)
        new, before = obj.get("addressType") or "", old.get("addressType") or ""
        yield from validate_declared_immutable(new, before, field.root("addressType"))

    def warnings_on_create(self, obj: Json) -> Iterable[str]:
        if obj.get("addressType") == "FQDN":
            yield "spec.addressType: FQDN endpoints are deprecated"
        yield from self._address_warnings(obj)

    def warnings_on_update(self, obj: Json, old: Json) -> Iterable[str]:
        return self._address_warnings(obj)

    def _validate(self, obj: Json) -> field.Errors:
        yield from self.validate_metadata(obj)
        kind, kind_path = obj.get("addressType") or "", field.root("addressType")
        yield from map(field.declared, fields.required_one_of(kind, kind_path, ADDRESS_TYPES))
        ports = obj.get("ports") or []
        path = field.root("ports")
        if len(ports) > MAX_PORTS:
            yield field.too_many(path, len(ports), MAX_PORTS)
        else:
            seen: set[str] = set()
            for position, port in enumerate(ports):
                at, name = path.index(position), port.get("name") or ""
                if name:
                    yield from fields.dns_label(name, at.child("name"))
                if name in seen:
                    yield field.duplicate(at.child("name"), name)
                seen.add(name)
                if port.get("protocol") is None:
                    yield field.required(at.child("protocol"))
                elif port["protocol"] not in fields.PROTOCOLS:
                    yield field.not_supported(at.child("protocol"), port["protocol"], fields.PROTOCOLS)
                if port.get("appProtocol") is not None:
                    yield from fields.qualified_name(port["appProtocol"], at.child("appProtocol"))

    def _address_warnings(self, obj: Json) -> Iterable[str]:
        if labels_of(obj).get(MANAGED_BY_LABEL) in _CAREFUL_MANAGERS:
            return
        for i, endpoint in enumerate(obj.get("endpoints") or ()):
            for j, address in enumerate(endpoint.get("addresses") or ()):
                yield from warnings_for_ip(address, field.root("endpoints").index(i).child("addresses").index(j))


def _validate_endpoints(obj: Json) -> field.Errors:
    return validate_endpoints(obj.get("endpoints") or [], obj.get("addressType") or "", field.root("endpoints"))


def _content(obj: Json) -> Json:
    rest = {key: value for key, value in obj.items() if key not in ("metadata", "kind", "apiVersion")}
    return rest | {"labels": labels_of(obj)}


def _drop_topology(obj: Json, old: Json | None) -> None:
    """Move the node of deprecatedTopology to nodeName; the topology is read-only in this version."""
    if old is not None and semantically_equal(obj.get("endpoints"), old.get("endpoints")):
        return
    stored_hostnames = {
        (item.get("deprecatedTopology") or {}).get(_HOSTNAME_LABEL) for item in (old or {}).get("endpoints") or ()
    }
    for endpoint in obj.get("endpoints") or ():
        node = (endpoint.pop("deprecatedTopology", None) or {}).get(_HOSTNAME_LABEL)
        if node and node in stored_hostnames and endpoint.get("nodeName") is None and not is_dns1123_subdomain(node):
            endpoint["nodeName"] = node


def _some(texts: list[str]) -> str:
    shown = ",".join(texts[:_SHOWN])
    if len(texts) > _SHOWN:
        return f"{shown} + {len(texts) - _SHOWN} more..."
    return shown or "<unset>"


def _ports(obj: Json) -> str:
    ports = obj.get("ports") or []
    return _some([str(port["port"]) if port.get("port") is not None else port.get("name", "*") for port in ports])


def _addresses(obj: Json) -> str:
    endpoints = obj.get("endpoints") or []
    return _some([address for endpoint in endpoints for address in endpoint.get("addresses") or ()])


ENDPOINT_SLICES = Resource(
    names=Names("endpointslices", kind="EndpointSlice"),
    strategy=EndpointSliceStrategy(),
    group="discovery.k8s.io",
    columns=[
        NAME,
        Column(
            "AddressType",
            lambda obj: obj.get("addressType") or "",
            documented=("io.k8s.api.discovery.v1.EndpointSlice", "addressType"),
        ),
        Column("Ports", _ports, documented=("io.k8s.api.discovery.v1.EndpointSlice", "ports")),
        Column("Endpoints", _addresses, documented=("io.k8s.api.discovery.v1.EndpointSlice", "endpoints")),
        AGE,
    ],
)


def validate_endpoints(endpoints: list[Json], address_type: str, path: field.Path) -> field.Errors:
    if len(endpoints) > MAX_ENDPOINTS:
        yield field.too_many(path, len(endpoints), MAX_ENDPOINTS)
        return
    for position, endpoint in enumerate(endpoints):
        at = path.index(position)
        yield from _validate_addresses(endpoint.get("addresses") or [], address_type, at.child("addresses"))
        if endpoint.get("nodeName") is not None:
            yield from fields.dns_subdomain(endpoint["nodeName"], at.child("nodeName"))
        topology = endpoint.get("deprecatedTopology") or {}
        deprecated_topology_path = at.child("deprecatedTopology")
        if len(topology) > MAX_TOPOLOGY_LABELS:
            yield field.too_many(deprecated_topology_path, len(topology), MAX_TOPOLOGY_LABELS)
        yield from validate_labels(topology, deprecated_topology_path)
        if _ZONE_LABEL in topology:
            yield field.internal(
                deprecated_topology_path.key(_ZONE_LABEL), "reserved key was not removed in conversion"
            )
        if endpoint.get("hostname") is not None:
            yield from fields.dns_label(endpoint["hostname"], at.child("hostname"))
        if endpoint.get("hints") is not None:
            hints = endpoint["hints"]
            hints_path = at.child("hints")
            zones, nodes = hints.get("forZones") or [], hints.get("forNodes") or []
            if len(zones) > MAX_HINTS:
                yield field.too_many(hints_path.child("forZones"), len(zones), MAX_HINTS)
            else:
                yield from _validate_names(zones, hints_path.child("forZones"), is_valid_label_value)
                if len(nodes) > MAX_HINTS:
                    yield field.too_many(hints_path.child("forNodes"), len(nodes), MAX_HINTS)
                else:
                    yield from _validate_names(nodes, hints_path.child("forNodes"), is_dns1123_subdomain)


def _validate_addresses(addresses: list[str], address_type: str, path: field.Path) -> field.Errors:
    if not addresses:
        yield field.declared(field.required(path, "must contain at least 1 address"))
    elif len(addresses) > MAX_ADDRESSES:
        yield field.too_many(path, len(addresses), MAX_ADDRESSES)
    for position, address in enumerate(addresses):
        if address_type in (IPV4, IPV6):
            at = path.index(position)
            wrong = list(legacy_ip(at, address) if address_type == IPV4 else is_valid_ip(at, address))
            yield from wrong
            if not wrong:
                if ip_family(address) != address_type:
                    yield field.invalid(path, address, f"must be an {address_type} address")
                yield from endpoint_ip(address, at)
        elif address_type == "FQDN":
            yield from fully_qualified_domain_name(address, path.index(position))


def _validate_names(hints: Iterable[Json], path: field.Path, rule: fields.Rule) -> field.Errors:
    seen: set[str] = set()
    for position, hint in enumerate(hints):
        at, name = path.index(position).child("name"), hint.get("name") or ""
        if name in seen:
            yield field.duplicate(at, name)
        seen.add(name)
        yield from fields.follow(rule, name, at)
