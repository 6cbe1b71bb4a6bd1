"""Validation of updates of a pod's status, including the statuses of resource claims."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.apiserver.server.features import enabled
from pilothouse.kube.core.pods.container_statuses import (
    validate_allocated_resources,
    validate_no_allocated_resources,
    validate_transitions,
    validate_users,
)
from pilothouse.kube.core.pods.update import validate_annotation_updates
from pilothouse.kube.core.pods.validation.options_from_stored import options_for_pod
from pilothouse.kube.validation.addresses import IPV4, IPV6, ONE_PER_FAMILY, ip_family, legacy_ip
from pilothouse.kube.validation.fields import dns_label, follow, qualified_name
from pilothouse.kube.validation.resource_names import is_native
from pilothouse.machinery.field import Errors, Path, duplicate, forbidden, internal, invalid, required, root
from pilothouse.machinery.objects import Json
from pilothouse.machinery.quantity import parse_quantity
from pilothouse.machinery.validation.immutable import validate_immutable_field
from pilothouse.machinery.validation.names import name_is_dns_subdomain

_STATUS = root("status")
_SYSTEM_CONDITIONS = ("PodScheduled", "Ready", "Initialized")
_NEGATIVE_GENERATION = "must be a non-negative integer"


def validate_status_update(pod: Json, old: Json) -> Errors:
    """Validate everything except the metadata."""
    status, stored = pod["status"], old.get("status") or {}
    yield from validate_annotation_updates(pod, old, options_for_pod(old))
    conditions_path = _STATUS.child("conditions")
    for position, condition in enumerate(status.get("conditions") or ()):
        if (generation := condition.get("observedGeneration") or 0) < 0:
            yield invalid(conditions_path.index(position).child("observedGeneration"), generation, _NEGATIVE_GENERATION)
        kind = condition.get("type") or ""
        if kind not in _SYSTEM_CONDITIONS:
            yield from qualified_name(kind, conditions_path.index(position).child("Type"))
    if (pod["spec"].get("nodeName") or "") != (old["spec"].get("nodeName") or ""):
        yield forbidden(_STATUS.child("nodeName"), "may not be changed directly")
    name, path = status.get("nominatedNodeName") or "", _STATUS.child("nominatedNodeName")
    if name and name != stored.get("nominatedNodeName"):
        yield from follow(name_is_dns_subdomain, name, path)
        if bool(old["spec"].get("nodeName")) and enabled("ClearingNominatedNodeNameAfterBinding"):
            yield forbidden(path, "may not be set on pods that are already bound to a node")
    if (generation := status.get("observedGeneration") or 0) < 0:
        yield invalid(_STATUS.child("observedGeneration"), generation, _NEGATIVE_GENERATION)
    quality = status.get("qosClass") or ""
    yield from validate_immutable_field(quality, stored.get("qosClass") or "", _STATUS.child("qosClass"))
    yield from validate_transitions(status, stored, old["spec"], _STATUS)
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
        yield from validate_allocated_resources(allocated, spec.get(containers) or (), extended, path)
    ephemeral = status.get("ephemeralContainerStatuses") or ()
    yield from validate_no_allocated_resources(ephemeral, _STATUS.child("ephemeralContainerStatuses"))


def _validate_address_list(name: str, status: Json, stored: Json) -> Errors:
    addresses = [address.get("ip") or "" for address in status.get(name) or ()]
    before = [address.get("ip") or "" for address in stored.get(name) or ()]
    path = _STATUS.child(name)
    for position, address in enumerate(addresses):
        yield from legacy_ip(path.index(position), address, old=before)
    if len(addresses) > 1:
        families = [ip_family(address) for address in addresses]
        if "" in families:
            position = families.index("")
            reason = f"failed to check for dual stack with error:invalid IP[{position}]: {addresses[position]}"
            yield internal(path, reason)
        if sorted(families) != [IPV4, IPV6]:
            shown = [{"IP": address} for address in addresses]
            yield invalid(path, shown, ONE_PER_FAMILY)


def validate_claim_statuses(statuses: Sequence[Json], claims: Sequence[Json], path: Path) -> Errors:
    names, seen = {claim.get("name") for claim in claims}, set()
    for position, status in enumerate(statuses):
        at, name = path.index(position), status.get("name") or ""
        if name not in names:
            yield invalid(at.child("name"), name, "must match the name of an entry in `spec.resourceClaims`")
        if name in seen:
            yield duplicate(at.child("name"), name)
        seen.add(name)
        if status.get("resourceClaimName") is not None:
            yield from follow(name_is_dns_subdomain, status["resourceClaimName"], at.child("resourceClaimName"))


def validate_extended_claim_status(status: Json, spec: Json, path: Path) -> Errors:
    containers = {
        container.get("name"): container
        for kind in ("initContainers", "containers")
        for container in spec.get(kind) or ()
    }
    mappings = status.get("requestMappings") or ()
    if not mappings:
        yield required(path.child("requestMappings"), "at least one request mapping is required")
    seen: set[tuple[str, ...]] = set()
    for position, mapping in enumerate(mappings):
        at = path.child("requestMappings").index(position)
        owner = containers.get(mapping.get("containerName"))
        resource = mapping.get("resourceName") or ""
        if owner is None:
            reason = "must match the name of an entry in spec.initContainers.name or spec.containers.name"
            yield invalid(at.child("containerName"), mapping.get("containerName") or "", reason)
        elif resource not in ((owner.get("resources") or {}).get("requests") or {}):
            reason = (
                "must match the extended resource name of an entry in spec.initContainers.resources.requests "
                "or spec.containers.resources.requests"
            )
            yield invalid(at.child("resourceName"), resource, reason)
        yield from dns_label(mapping.get("requestName") or "", path.child("requestName"))
        key = tuple(mapping.get(name) or "" for name in ("containerName", "resourceName", "requestName"))
        if key in seen:
            for name, value in zip(("containerName", "resourceName", "requestName"), key, strict=True):
                yield duplicate(at.child(name), value)
        seen.add(key)
    if not status.get("resourceClaimName"):
        yield required(path.child("resourceClaimName"))
    else:
        yield from follow(name_is_dns_subdomain, status["resourceClaimName"], path.child("resourceClaimName"))


def validate_node_allocatable_claims(status: Json, spec: Json, path: Path) -> Errors:
    names = {claim.get("resourceClaimName") for claim in spec.get("resourceClaims") or ()}
    names |= {claim.get("resourceClaimName") for claim in status.get("resourceClaimStatuses") or ()}
    for position, claim in enumerate(status.get("nodeAllocatableResourceClaimStatuses") or ()):
        at, name = path.index(position), claim.get("resourceClaimName") or ""
        if not name:
            yield required(at.child("resourceClaimName"), "must not be empty")
        if name not in names:
            yield invalid(at.child("resourceClaimName"), name, "no mapping found in pod reference")
        for field in ("containers", "resources"):
            if not claim.get(field):
                yield required(at.child(field), "must not be empty")
        for resource, text in sorted((claim.get("resources") or {}).items()):
            key = at.child("resources").key(resource)
            if not is_native(resource):
                yield invalid(key, resource, "must be a node allocatable resource name")
            if parse_quantity(text).sign < 0:
                yield invalid(key, text, "must be non-negative")
