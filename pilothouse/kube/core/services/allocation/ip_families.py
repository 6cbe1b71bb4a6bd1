"""The IP families of a service, derived from the request, the stored service and the cluster's families."""

from __future__ import annotations

from pilothouse.kube.core.services import traits
from pilothouse.kube.core.services.inference import other_family
from pilothouse.kube.core.services.validation.cluster_ips import validate_cluster_ips
from pilothouse.kube.validation.addresses import cidr_family, ip_family
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import Invalid
from pilothouse.machinery.field import Errors, invalid, root
from pilothouse.machinery.names import GroupKind
from pilothouse.machinery.objects import Json, name_of

_POLICY = root("spec", "ipFamilyPolicy")


@dataclass(frozen=True, slots=True)
class ClusterFamilies:
    """The IP families of the cluster's service ranges, the default family first."""

    configured: tuple[str, ...]

    @classmethod
    def of(cls, cidrs: tuple[str, ...]) -> ClusterFamilies:
        return cls(tuple(cidr_family(cidr) for cidr in cidrs))

    @property
    def default(self) -> str:
        return self.configured[0]


def keeps_dual_stack_preference(service: Json, old: Json | None) -> bool:
    """Report whether an unchanged PreferDualStack service keeps its addresses, regardless of changes of the cluster."""
    return (
        old is not None
        and traits.type_of(service) == traits.type_of(old) != traits.EXTERNAL_NAME
        and traits.ip_family_policy_of(service) == traits.PREFER_DUAL_STACK
        and traits.ip_family_policy_of(old) in ("", traits.PREFER_DUAL_STACK)
        and traits.cluster_ips_of(service) == traits.cluster_ips_of(old)
        and traits.ip_families_of(service) == traits.ip_families_of(old)
    )


def init_ip_families(service: Json, old: Json | None, cluster: ClusterFamilies) -> None:
    """Set ipFamilyPolicy and ipFamilies. Raises Invalid for an impossible combination."""
    if traits.type_of(service) == traits.EXTERNAL_NAME or keeps_dual_stack_preference(service, old):
        return
    spec = service["spec"]
    if spec.get("ipFamilyPolicy") is None:
        if old is not None and traits.ip_family_policy_of(old):
            spec["ipFamilyPolicy"] = traits.ip_family_policy_of(old)
        else:
            spec["ipFamilyPolicy"] = (
                traits.REQUIRE_DUAL_STACK if traits.is_selectorless_headless(service) else traits.SINGLE_STACK
            )
    _refuse(service, validate_cluster_ips(service, old))
    reduced = list(_reduce(service, old)) if old is not None else []
    _refuse(service, iter([*reduced, *_single_stack_errors(service), *_infer_families(service, cluster)]))
    if not traits.is_selectorless_headless(service):
        _refuse(service, _configuration_errors(service, cluster))
    families = spec["ipFamilies"] = traits.ip_families_of(service) or [cluster.default]
    may_add = traits.is_selectorless_headless(service) or len(cluster.configured) == 2
    if spec["ipFamilyPolicy"] != traits.SINGLE_STACK and len(families) == 1 and may_add:
        families.append(other_family(families[0]))


def _reduce(service: Json, old: Json) -> Errors:
    """Drop the second address and family on a change to single stack. Dual stack without a second family is an
    error."""
    spec, policy = service["spec"], traits.ip_family_policy_of(service)
    parts = {"clusterIPs": "cluster IP", "ipFamilies": "IP family"}
    for field, noun in parts.items():
        values, before = spec.get(field) or [], old["spec"].get(field) or []
        if policy == traits.SINGLE_STACK:
            if values == before and len(values) > 1:
                spec[field] = values[:1]
        elif values and len(values) < len(before):
            yield invalid(_POLICY, policy, f"must be 'SingleStack' to release the secondary {noun}")


def _single_stack_errors(service: Json) -> Errors:
    if traits.ip_family_policy_of(service) != traits.SINGLE_STACK:
        return
    for values, noun in (
        (traits.cluster_ips_of(service), "cluster IPs"),
        (traits.ip_families_of(service), "IP families"),
    ):
        if len(values) == 2:
            reason = f"must be 'RequireDualStack' or 'PreferDualStack' when multiple {noun} are specified"
            yield invalid(_POLICY, traits.SINGLE_STACK, reason)


def _infer_families(service: Json, cluster: ClusterFamilies) -> Errors:
    """Append a family for each address without family."""
    ips, families = traits.cluster_ips_of(service), list(traits.ip_families_of(service))
    for position, ip in enumerate(ips):
        if ip == traits.NO_ADDRESS:
            break
        if position < len(families):
            continue
        family = ip_family(ip)
        if family not in cluster.configured:
            yield invalid(
                root("spec", "clusterIPs").index(position), ips, f"{family} is not configured on this cluster"
            )
        else:
            families.append(family)
    if families:
        service["spec"]["ipFamilies"] = families


def _configuration_errors(service: Json, cluster: ClusterFamilies) -> Errors:
    if traits.ip_family_policy_of(service) == traits.REQUIRE_DUAL_STACK and len(cluster.configured) < 2:
        yield invalid(_POLICY, traits.REQUIRE_DUAL_STACK, "this cluster is not configured for dual-stack services")
    for position, family in enumerate(traits.ip_families_of(service)):
        if family not in cluster.configured:
            yield invalid(root("spec", "ipFamilies").index(position), family, "not configured on this cluster")


def _refuse(service: Json, errors: Errors) -> None:
    if problems := list(errors):
        raise Invalid.of(GroupKind("", "Service"), name_of(service), problems)
