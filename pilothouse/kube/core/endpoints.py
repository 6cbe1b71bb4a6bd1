"""Endpoints: deprecated in favour of EndpointSlices, and served with a warning on every response."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pilothouse.apiserver.endpoints.routes import Deprecation
from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.kube.strategy import KubeStrategy
from pilothouse.kube.validation import fields
from pilothouse.kube.validation.addresses import endpoint_ip, legacy_ip, warnings_for_ip
from pilothouse.machinery.field import Errors, required, root
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json, labels_of
from pilothouse.machinery.validation.immutable import semantically_equal

ENDPOINTS_DEPRECATION = Deprecation(
    since="1.33", replacement=GroupVersionKind("discovery.k8s.io", "v1", "EndpointSlice")
)

_MANAGED_BY_LABEL = "endpoints.kubernetes.io/managed-by"
_CAREFUL_MANAGER = "endpoint-controller"
_SHOWN = 3


class EndpointsStrategy(KubeStrategy):
    allow_create_on_update = True
    repeats_warnings_on_update = True

    def default(self, obj: Json) -> None:
        for subset in obj.get("subsets") or ():
            for port in subset.get("ports") or ():
                port["protocol"] = port.get("protocol") or "TCP"

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        yield from _validate_subsets(obj)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        yield from self.validate_metadata(obj)
        # Unchanged subsets may violate rules that are newer than the object.
        if not semantically_equal(obj.get("subsets"), old.get("subsets")):
            yield from _validate_subsets(obj)

    def warnings_on_create(self, obj: Json) -> Iterable[str]:
        if labels_of(obj).get(_MANAGED_BY_LABEL) == _CAREFUL_MANAGER:
            return
        for i, subset in enumerate(obj.get("subsets") or ()):
            for group in ("addresses", "notReadyAddresses"):
                for j, address in enumerate(subset.get(group) or ()):
                    path = root("subsets").index(i).child(group).index(j).child("ip")
                    yield from warnings_for_ip(address.get("ip") or "", path)


def _validate_subsets(obj: Json) -> Errors:
    for position, subset in enumerate(obj.get("subsets") or ()):
        path, ports = root("subsets").index(position), subset.get("ports") or []
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            yield required(path, "must specify `addresses` or `notReadyAddresses`")
        for group in ("addresses", "notReadyAddresses"):
            for i, address in enumerate(subset.get(group) or ()):
                address_path = path.child(group).index(i)
                ip = address.get("ip") or ""
                yield from legacy_ip(address_path.child("ip"), ip)
                if address.get("hostname"):
                    yield from fields.dns_label(address["hostname"], address_path.child("hostname"))
                if address.get("nodeName") is not None:
                    yield from fields.dns_subdomain(address["nodeName"], address_path.child("nodeName"))
                yield from endpoint_ip(ip, address_path.child("ip"))
        for i, port in enumerate(ports):
            port_path = path.child("ports").index(i)
            if port.get("name"):
                yield from fields.dns_label(port["name"], port_path.child("name"))
            elif len(ports) > 1:
                yield required(port_path.child("name"))
            yield from fields.port_num(port.get("port") or 0, port_path.child("port"))
            yield from fields.required_one_of(port.get("protocol") or "", port_path.child("protocol"), fields.PROTOCOLS)
            if port.get("appProtocol") is not None:
                yield from fields.qualified_name(port["appProtocol"], port_path.child("appProtocol"))


def _reachable(obj: Json) -> Iterator[str]:
    """Yield every combination of address and port within each subset."""
    for subset in obj.get("subsets") or ():
        addresses = [address.get("ip") or "" for address in subset.get("addresses") or ()]
        if not subset.get("ports"):
            yield from addresses
        for port in subset.get("ports") or ():
            for ip in addresses:
                yield f"[{ip}]:{port.get('port') or 0}" if ":" in ip else f"{ip}:{port.get('port') or 0}"


def _endpoints(obj: Json) -> str:
    if not obj.get("subsets"):
        return "<none>"
    reachable = list(_reachable(obj))
    printed = ",".join(reachable[:_SHOWN])
    return f"{printed} + {len(reachable) - _SHOWN} more..." if len(reachable) > _SHOWN else printed


ENDPOINTS = Resource(
    names=Names("endpoints", kind="Endpoints", singular="endpoints", short=["ep"]),
    strategy=EndpointsStrategy(),
    storage_path="services/endpoints",
    columns=[NAME, Column("Endpoints", _endpoints, documented=("io.k8s.api.core.v1.Endpoints", "subsets")), AGE],
)
