"""Fields of a service that are derived from other fields, from the stored service, or dropped on a change of type.

On a change of type, fields without meaning for the new type are dropped. Fields that the client changed too are kept;
validation reports them.
"""

from __future__ import annotations

from pilothouse.kube.core.services import traits
from pilothouse.kube.validation.addresses import IPV4, IPV6, ip_family
from pilothouse.machinery.objects import Json


def normalize_cluster_ips(service: Json, old: Json | None) -> None:
    """Keep clusterIPs in sync with clusterIP, for clients that only know clusterIP."""
    spec = service["spec"]
    single, plural = traits.cluster_ip_of(service), traits.cluster_ips_of(service)
    if old is None:
        if single and not plural:
            spec["clusterIPs"] = [single]
        return
    before, plural_before = traits.cluster_ip_of(old), traits.cluster_ips_of(old)
    if plural_before and not plural and before == single:
        plural = list(plural_before)
    if before != single and plural == plural_before:
        plural = [single] if single else []
    traits.set_or_drop(spec, "clusterIPs", plural)


def patch_allocated_values(service: Json, old: Json) -> None:
    """Copy allocated values from the stored service, so that repeated updates with the same manifest succeed."""
    if traits.needs_cluster_ip(old) and traits.needs_cluster_ip(service):
        traits.set_or_drop(service["spec"], "clusterIP", traits.cluster_ip_of(service) or traits.cluster_ip_of(old))
        traits.set_or_drop(
            service["spec"], "clusterIPs", traits.cluster_ips_of(service) or list(traits.cluster_ips_of(old))
        )
    if traits.gets_node_ports(old) and traits.gets_node_ports(service):
        # Match ports by name, since other properties may have changed.
        used = set(traits.node_ports_of(old)) & set(traits.node_ports_of(service))
        by_name = {port.get("name") or "": port.get("nodePort") or 0 for port in traits.ports_of(old)}
        for port in traits.ports_of(service):
            allocated = by_name.get(port.get("name") or "", 0)
            if not port.get("nodePort") and allocated and allocated not in used:
                port["nodePort"] = allocated
    if traits.needs_health_check(old) and traits.needs_health_check(service):
        health_check = traits.health_check_port_of(service) or traits.health_check_port_of(old)
        traits.set_or_drop(service["spec"], "healthCheckNodePort", health_check)


def default_on_read(service: Json, primary_family: str) -> None:
    """Complete a service from before clusterIPs and IP families."""
    normalize_cluster_ips(service, None)
    spec = service["spec"]
    if traits.type_of(service) == traits.EXTERNAL_NAME:
        spec.pop("internalTrafficPolicy", None)
    elif not traits.ip_families_of(service):
        if traits.is_selectorless_headless(service):
            families = [primary_family, other_family(primary_family)]
        elif traits.cluster_ip_of(service) == traits.NO_ADDRESS:
            families = [primary_family]
        else:
            families = [ip_family(ip) or IPV4 for ip in traits.cluster_ips_of(service)]
        traits.set_or_drop(spec, "ipFamilies", families)
        traits.set_or_drop(
            spec, "ipFamilyPolicy", {1: traits.SINGLE_STACK, 2: traits.REQUIRE_DUAL_STACK}.get(len(families), "")
        )


def other_family(family: str) -> str:
    return IPV6 if family == IPV4 else IPV4


def drop_type_dependent_fields(service: Json, old: Json) -> None:
    if traits.needs_cluster_ip(old) and not traits.needs_cluster_ip(service):
        spec = service["spec"]
        if traits.cluster_ip_of(old) == traits.cluster_ip_of(service) and traits.cluster_ips_of(
            old
        ) == traits.cluster_ips_of(service):
            spec.pop("clusterIP", None)
            spec.pop("clusterIPs", None)
        if traits.ip_families_of(old) == traits.ip_families_of(service):
            spec.pop("ipFamilies", None)
        if traits.ip_family_policy_of(old) == traits.ip_family_policy_of(service):
            spec.pop("ipFamilyPolicy", None)
    if (
        traits.has_node_ports(old)
        and not traits.has_node_ports(service)
        and set(traits.node_ports_of(service)) <= set(traits.node_ports_of(old))
    ):
        for port in traits.ports_of(service):
            port.pop("nodePort", None)
    same_check = traits.health_check_port_of(old) == traits.health_check_port_of(service)
    if traits.needs_health_check(old) and not traits.needs_health_check(service) and same_check:
        service["spec"].pop("healthCheckNodePort", None)
    if traits.type_of(old) == traits.LOAD_BALANCER and traits.type_of(service) != traits.LOAD_BALANCER:
        for field in ("allocateLoadBalancerNodePorts", "loadBalancerClass"):
            if _same(service, old, field):
                service["spec"].pop(field, None)
    if (
        traits.is_externally_accessible(old)
        and not traits.is_externally_accessible(service)
        and _same(service, old, "externalTrafficPolicy")
    ):
        service["spec"].pop("externalTrafficPolicy", None)
    if traits.type_of(service) != traits.LOAD_BALANCER:
        service.setdefault("status", {})["loadBalancer"] = {}


def _same(service: Json, old: Json, field: str) -> bool:
    return bool(service["spec"].get(field) == old["spec"].get(field))
