"""Changing a service's type: what the new type has no use for is dropped, unless the client changed it too.

What a client did change stays, and validation then tells the client that it does not fit.
"""

from __future__ import annotations

from pilothouse.kube.core.services.traits import (
    LOAD_BALANCER,
    cluster_ip_of,
    cluster_ips_of,
    has_node_ports,
    health_check_port_of,
    ip_families_of,
    ip_family_policy_of,
    is_externally_accessible,
    needs_cluster_ip,
    needs_health_check,
    node_ports_of,
    ports_of,
    type_of,
)
from pilothouse.machinery.objects import Json


def drop_type_dependent_fields(service: Json, old: Json) -> None:
    _drop_addresses(service, old)
    if has_node_ports(old) and not has_node_ports(service) and set(node_ports_of(service)) <= set(node_ports_of(old)):
        for port in ports_of(service):
            port.pop("nodePort", None)
    same_check = health_check_port_of(old) == health_check_port_of(service)
    if needs_health_check(old) and not needs_health_check(service) and same_check:
        service["spec"].pop("healthCheckNodePort", None)
    _drop_load_balancing(service, old)
    if (
        is_externally_accessible(old)
        and not is_externally_accessible(service)
        and _same(service, old, "externalTrafficPolicy")
    ):
        service["spec"].pop("externalTrafficPolicy", None)
    if type_of(service) != LOAD_BALANCER:
        service.setdefault("status", {})["loadBalancer"] = {}


def _drop_addresses(service: Json, old: Json) -> None:
    if not needs_cluster_ip(old) or needs_cluster_ip(service):
        return
    spec = service["spec"]
    if cluster_ip_of(old) == cluster_ip_of(service) and cluster_ips_of(old) == cluster_ips_of(service):
        spec.pop("clusterIP", None)
        spec.pop("clusterIPs", None)
    if ip_families_of(old) == ip_families_of(service):
        spec.pop("ipFamilies", None)
    if ip_family_policy_of(old) == ip_family_policy_of(service):
        spec.pop("ipFamilyPolicy", None)


def _drop_load_balancing(service: Json, old: Json) -> None:
    if type_of(old) != LOAD_BALANCER or type_of(service) == LOAD_BALANCER:
        return
    for field in ("allocateLoadBalancerNodePorts", "loadBalancerClass"):
        if _same(service, old, field):
            service["spec"].pop(field, None)


def _same(service: Json, old: Json, field: str) -> bool:
    return bool(service["spec"].get(field) == old["spec"].get(field))
