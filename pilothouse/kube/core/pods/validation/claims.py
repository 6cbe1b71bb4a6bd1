"""Validation of resource claims, readiness gates, scheduling gates and scheduling groups of a pod."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.kube.core.pods.internal_form import internal_form
from pilothouse.kube.validation.fields import dns_label, follow, qualified_name
from pilothouse.machinery.field import Errors, Path, duplicate, forbidden, invalid, required
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.names import name_is_dns_subdomain

NO_FIELD = Path("[]")
"""Upstream's rendering of a nil path."""


def validate_resource_claims(claims: Sequence[Json], path: Path, *, is_mirror_pod: bool) -> Errors:
    names: set[str] = set()
    for position, claim in enumerate(claims):
        if is_mirror_pod:
            yield forbidden(NO_FIELD, "static pods do not support resource claims")
        else:
            claim_path = path.index(position)
            name = claim.get("name") or ""
            if not name:
                yield required(claim_path.child("name"))
            elif name in names:
                yield duplicate(claim_path.child("name"), name)
            else:
                yield from dns_label(name, claim_path.child("name"))
                names.add(name)
            sources = [
                source for source in ("resourceClaimName", "resourceClaimTemplateName") if claim.get(source) is not None
            ]
            if len(sources) > 1:
                reason = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
                yield invalid(claim_path, internal_form("PodResourceClaim", claim), reason)
            if not sources:
                reason = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
                yield invalid(claim_path, internal_form("PodResourceClaim", claim), reason)
            for source in sources:
                yield from follow(name_is_dns_subdomain, claim[source], claim_path.child(source))


def validate_readiness_gates(gates: Sequence[Json], path: Path) -> Errors:
    for position, gate in enumerate(gates):
        yield from qualified_name(gate.get("conditionType") or "", path.index(position).child("conditionType"))


def validate_scheduling_gates(gates: Sequence[Json], path: Path) -> Errors:
    seen: set[str] = set()
    for position, gate in enumerate(gates):
        name = gate.get("name") or ""
        yield from qualified_name(name, path.index(position))
        if name in seen:
            yield duplicate(path.index(position), name)
        seen.add(name)


def validate_scheduling_group(group: Json, path: Path) -> Errors:
    name = group.get("podGroupName")
    if name is None:
        yield invalid(path.child("podGroupName"), None, "must specify one of: `podGroupName`")
    else:
        yield from follow(name_is_dns_subdomain, name, path.child("podGroupName"))
