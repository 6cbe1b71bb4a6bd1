"""Accessors for the resource claims of pods."""

from __future__ import annotations

from pilothouse.kinds.deletion import is_deleting
from pilothouse.kinds.owners import controller_of
from pilothouse.kinds.pods import has_ended, node_name
from pilothouse.kinds.references import resource_claim_names
from pilothouse.machinery.objects import Json, items, namespace_of, uid_of

FINALIZER = "resource.kubernetes.io/delete-protection"
POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
"""Annotation on a generated claim: its name within the pod."""


def pod_claims(pod: Json) -> list[Json]:
    return items(pod, "spec", "resourceClaims")


def claim_keys(pod: Json) -> list[str]:
    return [f"{namespace_of(pod)}/{name}" for name in resource_claim_names(pod)]


def template_keys(pod: Json) -> set[str]:
    names = (each.get("resourceClaimTemplateName") for each in pod_claims(pod))
    return {f"{namespace_of(pod)}/{name}" for name in names if name}


def is_done(pod: Json) -> bool:
    """Return whether the pod will never run again."""
    return has_ended(pod) or (is_deleting(pod) and not node_name(pod))


def owning_pod(claim: Json) -> Json | None:
    """Return the reference to the pod that the claim was created for; None if there is none."""
    owner = controller_of(claim)
    return owner if owner is not None and (owner["apiVersion"], owner["kind"]) == ("v1", "Pod") else None


def is_for(claim: Json, pod: Json) -> bool:
    owner = owning_pod(claim)
    return owner is not None and owner["uid"] == uid_of(pod)


def is_reserved_for(claim: Json, pod: Json) -> bool:
    reserved = items(claim, "status", "reservedFor")
    return any(each.get("uid") == uid_of(pod) for each in reserved)
