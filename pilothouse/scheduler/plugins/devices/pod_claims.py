"""ResourceClaims of a pod."""

from __future__ import annotations

from pilothouse.client.cache.indexer import Indexer
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kinds.owners import is_controlled_by
from pilothouse.machinery.objects import Json
from pilothouse.scheduler.cache.pod_info import PodInfo

MOST_CONSUMERS = 256


class ClaimUnusable(Exception):
    """A claim blocks the pod; the message is the reason."""


def resource_claims_of(pod: PodInfo, claims: Indexer) -> list[Json]:
    """Return the pod's claims. Raises ClaimUnusable."""
    found = []
    for reference in pod.spec.get("resourceClaims") or ():
        name = _claim_name(pod, reference)
        if name is None:
            continue  # the pod turned out to need no claim
        claim = claims.get_by_key(f"{pod.namespace}/{name}")
        if claim is None:
            raise ClaimUnusable(f'resourceclaim.resource.k8s.io "{name}" not found')
        if is_deleting(claim):
            raise ClaimUnusable(f'resourceclaim "{name}" is being deleted')
        if reference.get("resourceClaimTemplateName") and not is_controlled_by(claim, pod.pod):
            raise ClaimUnusable(
                f"ResourceClaim {pod.namespace}/{name} was not created for pod {pod.key} (pod is not owner)"
            )
        found.append(claim)
    return found


def allocation_of(claim: Json) -> Json | None:
    found: Json | None = (claim.get("status") or {}).get("allocation")
    return found


def consumers_of(claim: Json) -> list[Json]:
    return list((claim.get("status") or {}).get("reservedFor") or ())


def is_reserved_for(pod: PodInfo, claim: Json) -> bool:
    return any(each.get("uid") == pod.uid for each in consumers_of(claim))


def _claim_name(pod: PodInfo, reference: Json) -> str | None:
    if name := reference.get("resourceClaimName"):
        return str(name)
    made = pod.status.get("resourceClaimStatuses") or ()
    status = next((each for each in made if each["name"] == reference["name"]), None)
    if status is None:
        raise ClaimUnusable(f'pod "{pod.key}": ResourceClaim not created yet')
    found: str | None = status.get("resourceClaimName")
    return found
