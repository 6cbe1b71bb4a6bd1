"""What pods say about the claims of devices that they use."""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.kinds.deletion import is_deleting
from pilothouse.kinds.owners import controller_of
from pilothouse.kinds.pods import has_ended, node_name
from pilothouse.machinery.objects import Json, namespace_of, uid_of

FINALIZER = "resource.kubernetes.io/delete-protection"
POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
"""On a claim that was made for a pod: which of the pod's claims it is."""


def pod_claims(pod: Json) -> list[Json]:
    return (pod.get("spec") or {}).get("resourceClaims") or []


def statuses_of(pod: Json) -> dict[str, str | None]:
    """Return by the names in the pod the claims that were made for it; None for one that it does not need."""
    found = (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    return {each["name"]: each.get("resourceClaimName") for each in found}


def claim_names(pod: Json) -> Iterator[str]:
    """The names of all claims that the pod uses and that exist, as far as it says."""
    made = statuses_of(pod)
    for each in pod_claims(pod):
        if name := each.get("resourceClaimName") or made.get(each["name"]):
            yield name
    extended = (pod.get("status") or {}).get("extendedResourceClaimStatus") or {}
    if name := extended.get("resourceClaimName"):
        yield name


def claim_keys(pod: Json) -> list[str]:
    return [f"{namespace_of(pod)}/{name}" for name in claim_names(pod)]


def template_keys(pod: Json) -> set[str]:
    names = (each.get("resourceClaimTemplateName") for each in pod_claims(pod))
    return {f"{namespace_of(pod)}/{name}" for name in names if name}


def is_done(pod: Json) -> bool:
    """Return whether the pod will never run any more."""
    return has_ended(pod) or (is_deleting(pod) and not node_name(pod))


def owning_pod(claim: Json) -> Json | None:
    """Return the reference to the pod that the claim was made for."""
    owner = controller_of(claim)
    return owner if owner is not None and (owner["apiVersion"], owner["kind"]) == ("v1", "Pod") else None


def is_for(claim: Json, pod: Json) -> bool:
    owner = owning_pod(claim)
    return owner is not None and owner["uid"] == uid_of(pod)


def is_reserved_for(claim: Json, pod: Json) -> bool:
    reserved = (claim.get("status") or {}).get("reservedFor") or ()
    return any(each.get("uid") == uid_of(pod) for each in reserved)
