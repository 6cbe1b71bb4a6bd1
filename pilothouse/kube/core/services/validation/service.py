"""Services as a whole: every check, in upstream's order."""

from __future__ import annotations

from pilothouse.kube.core.services.traits import (
    EXTERNAL_NAME,
    LOAD_BALANCER,
    NODE_PORT,
    TYPES,
    cluster_ips_of,
    ip_families_of,
    is_headless,
    ports_of,
    type_of,
)
from pilothouse.kube.core.services.validation.cluster_ips import validate_cluster_ips
from pilothouse.kube.core.services.validation.load_balancers import (
    validate_load_balancer_class,
    validate_load_balancer_fields,
)
from pilothouse.kube.core.services.validation.ports import validate_port_uniqueness, validate_ports
from pilothouse.kube.core.services.validation.traffic import (
    validate_affinity,
    validate_external_traffic,
    validate_internal_traffic,
    validate_traffic_distribution,
)
from pilothouse.kube.core.services.warnings import TOPOLOGY_HINTS, TOPOLOGY_MODE
from pilothouse.kube.validation.addresses import endpoint_ip, legacy_ip
from pilothouse.kube.validation.fields import dns_subdomain, required_one_of
from pilothouse.machinery.field import Errors, forbidden, invalid, required, root
from pilothouse.machinery.objects import Json, annotations_of
from pilothouse.machinery.validation.labels import validate_labels

_SPEC = root("spec")


def validate_service(service: Json, old: Json | None) -> Errors:
    """`old` is the stored service on an update: what it has already, it may keep."""
    annotations = annotations_of(service)
    hints, mode = annotations.get(TOPOLOGY_HINTS), annotations.get(TOPOLOGY_MODE)
    if hints is not None and mode is not None and hints != mode:
        path = root("metadata", "annotations").key(TOPOLOGY_MODE)
        yield invalid(path, mode, f"must match annotations[{TOPOLOGY_HINTS}] when both are specified")
    if not ports_of(service) and not is_headless(service) and type_of(service) != EXTERNAL_NAME:
        yield required(_SPEC.child("ports"))
    if type_of(service) in (LOAD_BALANCER, NODE_PORT) and is_headless(service):
        why = f"may not be set to 'None' for {type_of(service)} services"
        yield invalid(_SPEC.child("clusterIPs").index(0), "None", why)
    if type_of(service) == EXTERNAL_NAME:
        yield from _validate_external_name(service)
    yield from validate_ports(service)
    yield from validate_labels(service["spec"].get("selector"), _SPEC.child("selector"))
    yield from validate_affinity(service["spec"])
    yield from validate_cluster_ips(service, old)
    yield from _validate_external_ips(service, old)
    yield from required_one_of(type_of(service), _SPEC.child("type"), TYPES)
    yield from validate_port_uniqueness(service)
    yield from validate_load_balancer_fields(service, old)
    yield from validate_load_balancer_class(service, None)
    yield from validate_external_traffic(service)
    yield from validate_internal_traffic(service)
    yield from validate_traffic_distribution(service)


def _validate_external_name(service: Json) -> Errors:
    why = "may not be set for ExternalName services"
    if cluster_ips_of(service):
        yield forbidden(_SPEC.child("clusterIPs"), why)
    if ip_families_of(service):
        yield forbidden(_SPEC.child("ipFamilies"), why)
    if service["spec"].get("ipFamilyPolicy") is not None:
        yield forbidden(_SPEC.child("ipFamilyPolicy"), why)
    name = (service["spec"].get("externalName") or "").removesuffix(".")
    if name:
        yield from dns_subdomain(name, _SPEC.child("externalName"))
    else:
        yield required(_SPEC.child("externalName"))


def _validate_external_ips(service: Json, old: Json | None) -> Errors:
    known = (old["spec"].get("externalIPs") or []) if old is not None else []
    for position, ip in enumerate(service["spec"].get("externalIPs") or ()):
        path = _SPEC.child("externalIPs").index(position)
        wrong = list(legacy_ip(path, ip, old=known))
        yield from wrong or endpoint_ip(ip, path)
