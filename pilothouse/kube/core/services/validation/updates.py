"""Validation of service updates: the first address and family are immutable, the second may be added or removed."""

from __future__ import annotations

from pilothouse.kube.core.services import traits
from pilothouse.machinery.field import Errors, forbidden, invalid, root
from pilothouse.machinery.objects import Json

_FIXED = "may not change once set"
_IPS = root("spec", "clusterIPs")
_FAMILIES = root("spec", "ipFamilies")


def validate_cluster_ips_update(service: Json, old: Json) -> Errors:
    if _free_to_change(service, old) or (traits.is_headless(service) and traits.is_headless(old)):
        return
    ips, before = traits.cluster_ips_of(service), traits.cluster_ips_of(old)
    if len(ips) == len(before):
        for position, ip in enumerate(before):
            if ips[position] != ip:
                yield invalid(_IPS.index(position), ips, _FIXED)
        return
    if not ips:
        yield invalid(_IPS.index(0), None, "primary clusterIP can not be unset")
    elif before and ips[0] != before[0]:
        yield invalid(_IPS.index(0), ips, _FIXED)
    if len(before) > len(ips) == 1:
        yield from _validate_downgrade(service, "clusterIP")


def validate_ip_families_update(service: Json, old: Json) -> Errors:
    if _free_to_change(service, old) or traits.is_headless(service) or traits.is_headless(old):
        return
    families, before = traits.ip_families_of(service), traits.ip_families_of(old)
    if len(families) == len(before):
        for position, family in enumerate(before):
            if families[position] != family:
                yield invalid(_FAMILIES.index(0), families, _FIXED)
        return
    if len(before) > len(families) and not traits.cluster_ips_of(service):
        yield invalid(_FAMILIES.index(0), service["spec"].get("ipFamilies"), "primary ipFamily can not be unset")
    if families and before and families[0] != before[0]:
        yield invalid(_FAMILIES.index(0), service["spec"].get("clusterIPs"), _FIXED)
    if len(before) > len(families) == 1:
        yield from _validate_downgrade(service, "ipFamily")


def validate_health_check_update(service: Json, old: Json) -> Errors:
    both = traits.needs_health_check(service) and traits.needs_health_check(old)
    if both and traits.health_check_port_of(service) != traits.health_check_port_of(old):
        yield forbidden(root("spec", "healthCheckNodePort"), "field is immutable")


def _free_to_change(service: Json, old: Json) -> bool:
    """Report whether the type changes from or to ExternalName: then all fields are mutable."""
    return traits.EXTERNAL_NAME in (traits.type_of(service), traits.type_of(old))


def _validate_downgrade(service: Json, noun: str) -> Errors:
    policy = service["spec"].get("ipFamilyPolicy")
    if policy != traits.SINGLE_STACK:
        reason = f"must be set to 'SingleStack' when releasing the secondary {noun}"
        yield invalid(root("spec", "ipFamilyPolicy"), policy, reason)
