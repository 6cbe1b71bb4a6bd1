"""Validation of the resource claims in a pod's status."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.kube.validation.fields import dns_label, follow
from pilothouse.kube.validation.resource_names import is_native
from pilothouse.machinery.field import Errors, Path, duplicate, invalid, required
from pilothouse.machinery.objects import Json
from pilothouse.machinery.quantity import parse_quantity
from pilothouse.machinery.validation.object_names import name_is_dns_subdomain


def validate_claim_statuses(statuses: Sequence[Json], claims: Sequence[Json], path: Path) -> Errors:
    known, seen = {claim.get("name") for claim in claims}, set()
    for position, status in enumerate(statuses):
        at, name = path.index(position), status.get("name") or ""
        if name not in known:
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
        yield from _validate_mapping(mapping, containers.get(mapping.get("containerName")), at)
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


def _validate_mapping(mapping: Json, container: Json | None, path: Path) -> Errors:
    resource = mapping.get("resourceName") or ""
    if container is None:
        why = "must match the name of an entry in spec.initContainers.name or spec.containers.name"
        yield invalid(path.child("containerName"), mapping.get("containerName") or "", why)
    elif resource not in ((container.get("resources") or {}).get("requests") or {}):
        why = (
            "must match the extended resource name of an entry in spec.initContainers.resources.requests "
            "or spec.containers.resources.requests"
        )
        yield invalid(path.child("resourceName"), resource, why)


def validate_node_allocatable_claims(status: Json, spec: Json, path: Path) -> Errors:
    known = {claim.get("resourceClaimName") for claim in spec.get("resourceClaims") or ()}
    known |= {claim.get("resourceClaimName") for claim in status.get("resourceClaimStatuses") or ()}
    for position, claim in enumerate(status.get("nodeAllocatableResourceClaimStatuses") or ()):
        at, name = path.index(position), claim.get("resourceClaimName") or ""
        if not name:
            yield required(at.child("resourceClaimName"), "must not be empty")
        if name not in known:
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
