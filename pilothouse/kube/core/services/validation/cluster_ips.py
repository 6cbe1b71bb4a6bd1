"""Validation and consistency of clusterIP, clusterIPs, ipFamilies and ipFamilyPolicy."""

from __future__ import annotations

from pilothouse.kube.core.services import traits
from pilothouse.kube.validation.addresses import AT_MOST_TWO, IPV4, IPV6, ONE_PER_FAMILY, ip_family, legacy_ip
from pilothouse.kube.validation.fields import one_of
from pilothouse.machinery.field import Errors, duplicate, invalid, not_supported, required, root
from pilothouse.machinery.objects import Json

_POLICIES = (traits.PREFER_DUAL_STACK, traits.REQUIRE_DUAL_STACK, traits.SINGLE_STACK)
_IPS = root("spec", "clusterIPs")
_FAMILIES = root("spec", "ipFamilies")


def validate_cluster_ips(service: Json, old: Json | None) -> Errors:
    """Validate the fields. Also called before allocation, as a precondition of the allocation."""
    if traits.type_of(service) == traits.EXTERNAL_NAME:
        return
    ips = traits.cluster_ips_of(service)
    single, plural = traits.cluster_ip_of(service), traits.cluster_ips_of(service)
    if not single:
        if plural:
            yield invalid(_IPS, plural, "must be empty when `clusterIP` is not specified")
    elif not plural:
        yield required(_IPS)
    elif plural[0] != single:
        yield invalid(_IPS, plural, "first value must match `clusterIP`")
    families = traits.ip_families_of(service)
    seen: set[str] = set()
    for position, family in enumerate(families):
        if family not in (IPV4, IPV6):
            yield not_supported(_FAMILIES.index(position), family, (IPV4, IPV6))
        if family in seen:
            yield duplicate(_FAMILIES.index(position), family)
        seen.add(family)
    if (policy := service["spec"].get("ipFamilyPolicy")) is not None:
        yield from one_of(policy, root("spec", "ipFamilyPolicy"), _POLICIES)
    wrong = list(_validate_each(ips, traits.cluster_ips_of(old) if old else []))
    yield from wrong
    if len(ips) > 2:
        yield invalid(_IPS, ips, AT_MOST_TWO)
    # Skip further errors about invalid addresses.
    if not wrong:
        ips = traits.cluster_ips_of(service)
        if len(ips) > 1 and {ip_family(ip) for ip in ips} != {IPV4, IPV6}:
            yield invalid(_IPS, ips, ONE_PER_FAMILY)
        if not traits.is_headless(service):
            pairs = zip(ips, traits.ip_families_of(service), strict=False)
            for position, (ip, family) in enumerate(pairs):
                if family in (IPV4, IPV6) and ip_family(ip) != family:
                    reason = f"expected an {family} value as indicated by `ipFamilies[{position}]`"
                    yield invalid(_IPS.index(position), ip, reason)


def _validate_each(ips: list[str], stored: list[str]) -> Errors:
    for position, ip in enumerate(ips):
        if position == 0 and ip == traits.NO_ADDRESS:
            if len(ips) > 1:
                yield invalid(_IPS, ips, "'None' must be the first and only value")
        else:
            yield from legacy_ip(_IPS.index(position), ip, old=stored)
