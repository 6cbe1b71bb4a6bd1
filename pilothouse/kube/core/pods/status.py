"""Validation of a write of a pod's status."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.apiserver.server.features import enabled
from pilothouse.kube.core.pods.claim_statuses import (
    validate_claim_statuses,
    validate_extended_claim_status,
    validate_node_allocatable_claims,
)
from pilothouse.kube.core.pods.container_statuses import (
    validate_allocated_resources,
    validate_no_allocated_resources,
    validate_transitions,
    validate_users,
)
from pilothouse.kube.core.pods.update import validate_annotation_updates
from pilothouse.kube.core.pods.validation.options_from_stored import options_for_pod
from pilothouse.kube.validation.addresses import IPV4, IPV6, ONE_PER_FAMILY, ip_family, legacy_ip
from pilothouse.kube.validation.fields import follow, qualified_name
from pilothouse.machinery.field import Errors, Path, forbidden, internal, invalid, root
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.immutable import validate_immutable_field
from pilothouse.machinery.validation.object_names import name_is_dns_subdomain

_STATUS = root("status")
_SYSTEM_CONDITIONS = ("PodScheduled", "Ready", "Initialized")
_NEGATIVE_GENERATION = "must be a non-negative integer"


def validate_status_update(pod: Json, old: Json) -> Errors:
    """Validate all but the metadata."""
    status, stored = pod["status"], old.get("status") or {}
    yield from validate_annotation_updates(pod, old, options_for_pod(old))
    yield from _validate_conditions(status.get("conditions") or (), _STATUS.child("conditions"))
    if (pod["spec"].get("nodeName") or "") != (old["spec"].get("nodeName") or ""):
        yield forbidden(_STATUS.child("nodeName"), "may not be changed directly")
    yield from _validate_nomination(status, stored, bound=bool(old["spec"].get("nodeName")))
    if (generation := status.get("observedGeneration") or 0) < 0:
        yield invalid(_STATUS.child("observedGeneration"), generation, _NEGATIVE_GENERATION)
    quality = status.get("qosClass") or ""
    yield from validate_immutable_field(quality, stored.get("qosClass") or "", _STATUS.child("qosClass"))
    yield from validate_transitions(status, stored, old["spec"], _STATUS)
    yield from _validate_claims(pod, status)
    yield from _validate_address_list("podIPs", status, stored)
    if hosts := status.get("hostIPs"):
        if (status.get("hostIP") or "") != (hosts[0].get("ip") or ""):
            at = _STATUS.child("hostIPs").index(0).child("ip")
            yield invalid(at, hosts[0].get("ip") or "", "must be equal to `hostIP`")
        yield from _validate_address_list("hostIPs", status, stored)
    spec = pod["spec"]
    os_name = (spec.get("os") or {}).get("name") or "linux"
    for kind in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        yield from validate_users(status.get(kind) or (), _STATUS.child(kind), os_name)
    for kind, containers in (("containerStatuses", "containers"), ("initContainerStatuses", "initContainers")):
        allocated, path = status.get(kind) or (), _STATUS.child(kind)
        yield from validate_allocated_resources(allocated, spec.get(containers) or (), path)
    ephemeral = status.get("ephemeralContainerStatuses") or ()
    yield from validate_no_allocated_resources(ephemeral, _STATUS.child("ephemeralContainerStatuses"))


def _validate_conditions(conditions: Sequence[Json], path: Path) -> Errors:
    for position, condition in enumerate(conditions):
        if (generation := condition.get("observedGeneration") or 0) < 0:
            yield invalid(path.index(position).child("observedGeneration"), generation, _NEGATIVE_GENERATION)
        kind = condition.get("type") or ""
        if kind not in _SYSTEM_CONDITIONS:
            yield from qualified_name(kind, path.index(position).child("Type"))


def _validate_nomination(status: Json, stored: Json, *, bound: bool) -> Errors:
    name, path = status.get("nominatedNodeName") or "", _STATUS.child("nominatedNodeName")
    if not name or name == stored.get("nominatedNodeName"):
        return
    yield from follow(name_is_dns_subdomain, name, path)
    if bound and enabled("ClearingNominatedNodeNameAfterBinding"):
        yield forbidden(path, "may not be set on pods that are already bound to a node")


def _validate_claims(pod: Json, status: Json) -> Errors:
    yield from validate_claim_statuses(
        status.get("resourceClaimStatuses") or (),
        pod["spec"].get("resourceClaims") or (),
        _STATUS.child("resourceClaimStatuses"),
    )
    if (extended := status.get("extendedResourceClaimStatus")) is not None:
        path = _STATUS.child("extendedResourceClaimStatus")
        yield from validate_extended_claim_status(extended, pod["spec"], path)
    path = _STATUS.child("nodeAllocatableResourceClaimStatuses")
    yield from validate_node_allocatable_claims(status, pod["spec"], path)


def _validate_address_list(name: str, status: Json, stored: Json) -> Errors:
    addresses = [each.get("ip") or "" for each in status.get(name) or ()]
    kept = [each.get("ip") or "" for each in stored.get(name) or ()]
    path = _STATUS.child(name)
    for position, address in enumerate(addresses):
        yield from legacy_ip(path.index(position), address, old=kept)
    if len(addresses) > 1:
        yield from _validate_dual_stack(addresses, path)


def _validate_dual_stack(addresses: Sequence[str], path: Path) -> Errors:
    families = [ip_family(address) for address in addresses]
    if "" in families:
        position = families.index("")
        why = f"failed to check for dual stack with error:invalid IP[{position}]: {addresses[position]}"
        yield internal(path, why)
    if sorted(families) != [IPV4, IPV6]:
        shown = [{"IP": address} for address in addresses]
        yield invalid(path, shown, ONE_PER_FAMILY)
