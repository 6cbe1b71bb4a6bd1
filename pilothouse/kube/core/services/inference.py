"""Fields of a service that are derived from other fields, from the stored service, or dropped on a change of type.

On a change of type, fields without meaning for the new type are dropped. Fields that the client changed too are kept;
validation reports them.
"""

from __future__ import annotations

from pilothouse.kube.core.services.traits import (
    EXTERNAL_NAME,
    LOAD_BALANCER,
    NO_ADDRESS,
    REQUIRE_DUAL_STACK,
    SINGLE_STACK,
    cluster_ip_of,
    cluster_ips_of,
    gets_node_ports,
    has_node_ports,
    health_check_port_of,
    ip_families_of,
    ip_family_policy_of,
    is_externally_accessible,
    is_selectorless_headless,
    needs_cluster_ip,
    needs_health_check,
    node_ports_of,
    ports_of,
    set_or_drop,
    type_of,
)
from pilothouse.kube.validation.addresses import IPV4, IPV6, ip_family
from pilothouse.machinery.objects import Json


def normalize_cluster_ips(service: Json, old: Json | None) -> None:
    """Keep clusterIPs in sync with clusterIP, for clients that only know clusterIP."""
    spec = service["spec"]
    single, plural = cluster_ip_of(service), cluster_ips_of(service)
    if old is None:
        if single and not plural:
            spec["clusterIPs"] = [single]
        return
    before, plural_before = cluster_ip_of(old), cluster_ips_of(old)
    if plural_before and not plural and before == single:
        plural = list(plural_before)
    if before != single and plural == plural_before:
        plural = [single] if single else []
    set_or_drop(spec, "clusterIPs", plural)


def patch_allocated_values(service: Json, old: Json) -> None:
    """Copy allocated values from the stored service, so that repeated updates with the same manifest succeed."""
    if needs_cluster_ip(old) and needs_cluster_ip(service):
        set_or_drop(service["spec"], "clusterIP", cluster_ip_of(service) or cluster_ip_of(old))
        set_or_drop(service["spec"], "clusterIPs", cluster_ips_of(service) or list(cluster_ips_of(old)))
    if gets_node_ports(old) and gets_node_ports(service):
        # Match ports by name, since other properties may have changed.
        used = set(node_ports_of(old)) & set(node_ports_of(service))
        by_name = {port.get("name") or "": port.get("nodePort") or 0 for port in ports_of(old)}
        for port in ports_of(service):
            allocated = by_name.get(port.get("name") or "", 0)
            if not port.get("nodePort") and allocated and allocated not in used:
                port["nodePort"] = allocated
    if needs_health_check(old) and needs_health_check(service):
        health_check = health_check_port_of(service) or health_check_port_of(old)
        set_or_drop(service["spec"], "healthCheckNodePort", health_check)


def default_on_read(service: Json, primary_family: str) -> None:
    """Complete a service from before clusterIPs and IP families."""
    normalize_cluster_ips(service, None)
    spec = service["spec"]
    if type_of(service) == EXTERNAL_NAME:
        spec.pop("internalTrafficPolicy", None)
    elif not ip_families_of(service):
        if is_selectorless_headless(service):
            families = [primary_family, other_family(primary_family)]
        elif cluster_ip_of(service) == NO_ADDRESS:
            families = [primary_family]
        else:
            families = [ip_family(ip) or IPV4 for ip in cluster_ips_of(service)]
        set_or_drop(spec, "ipFamilies", families)
        set_or_drop(spec, "ipFamilyPolicy", {1: SINGLE_STACK, 2: REQUIRE_DUAL_STACK}.get(len(families), ""))


def other_family(family: str) -> str:
    return IPV6 if family == IPV4 else IPV4


def drop_type_dependent_fields(service: Json, old: Json) -> None:
    if needs_cluster_ip(old) and not needs_cluster_ip(service):
        spec = service["spec"]
        if cluster_ip_of(old) == cluster_ip_of(service) and cluster_ips_of(old) == cluster_ips_of(service):
            spec.pop("clusterIP", None)
            spec.pop("clusterIPs", None)
        if ip_families_of(old) == ip_families_of(service):
            spec.pop("ipFamilies", None)
        if ip_family_policy_of(old) == ip_family_policy_of(service):
            spec.pop("ipFamilyPolicy", None)
    if has_node_ports(old) and not has_node_ports(service) and set(node_ports_of(service)) <= set(node_ports_of(old)):
        for port in ports_of(service):
            port.pop("nodePort", None)
    same_check = health_check_port_of(old) == health_check_port_of(service)
    if needs_health_check(old) and not needs_health_check(service) and same_check:
        service["spec"].pop("healthCheckNodePort", None)
    if type_of(old) == LOAD_BALANCER and type_of(service) != LOAD_BALANCER:
        for field in ("allocateLoadBalancerNodePorts", "loadBalancerClass"):
            if _same(service, old, field):
                service["spec"].pop(field, None)
    if (
        is_externally_accessible(old)
        and not is_externally_accessible(service)
        and _same(service, old, "externalTrafficPolicy")
    ):
        service["spec"].pop("externalTrafficPolicy", None)
    if type_of(service) != LOAD_BALANCER:
        service.setdefault("status", {})["loadBalancer"] = {}


def _same(service: Json, old: Json, field: str) -> bool:
    return bool(service["spec"].get(field) == old["spec"].get(field))
