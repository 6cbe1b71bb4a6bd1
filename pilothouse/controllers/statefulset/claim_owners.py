"""Who owns the claims of a StatefulSet, so that they are deleted with it, with their pod, or never.

| whenDeleted | whenScaled | a pod that shall run | a pod beyond the replicas |
|---|---|---|---|
| Retain | Retain | nobody | nobody |
| Delete | Retain | the set | the set |
| Retain | Delete | nobody | the pod |
| Delete | Delete | the set | the pod |

Owners are its controllers. A claim that another controller has, or that was owned by a set or pod of the same name
that is gone, is left alone.
"""

from __future__ import annotations

from pilothouse.controllers.statefulset.identity import ordinal_of, ordinals
from pilothouse.kinds.owners import controller_ref, is_owned_by, owner_references
from pilothouse.machinery.objects import Json, metadata, name_of, uid_of

_RETAIN, _DELETE = "Retain", "Delete"


def retention_policy(stateful_set: Json) -> tuple[str, str]:
    """Return what becomes of the claims when the set is deleted, and when it is scaled down."""
    policy = stateful_set["spec"].get("persistentVolumeClaimRetentionPolicy")
    if policy is None:
        return _RETAIN, _RETAIN
    return policy.get("whenDeleted") or _RETAIN, policy.get("whenScaled") or _RETAIN


def wanted_owner(stateful_set: Json, pod: Json) -> Json | None:
    """Return the set, the pod, or None, as the table says."""
    when_deleted, when_scaled = retention_policy(stateful_set)
    if when_scaled == _DELETE and ordinal_of(pod) not in ordinals(stateful_set):
        return pod
    return stateful_set if when_deleted == _DELETE else None


def has_unexpected_controller(claim: Json, stateful_set: Json, pod: Json) -> bool:
    """Whether the set would have claims deleted, and somebody else controls this one."""
    if _DELETE not in retention_policy(stateful_set):
        return False
    for reference in owner_references(claim):
        mine = next((each for each in (stateful_set, pod) if _names(reference, each)), None)
        if mine is None and reference.get("controller"):
            return True
        if mine is not None and reference.get("uid") != uid_of(mine):
            return True
    return False


def is_stale(claim: Json, owner: Json) -> bool:
    """Whether the claim was owned by another object of the owner's kind and name, which is gone."""
    reference = next((each for each in owner_references(claim) if _names(each, owner)), None)
    return reference is not None and reference.get("uid") != uid_of(owner)


def is_owner_up_to_date(claim: Json, stateful_set: Json, pod: Json) -> bool:
    """Whether the claim is owned as the table says, or must not be touched."""
    if is_stale(claim, stateful_set) or is_stale(claim, pod):
        return True
    if has_unexpected_controller(claim, stateful_set, pod):
        return not is_owned_by(claim, stateful_set) and not is_owned_by(claim, pod)
    ours = (uid_of(stateful_set), uid_of(pod))
    if any(each.get("uid") in ours and not each.get("controller") for each in owner_references(claim)):
        return False
    wanted = wanted_owner(stateful_set, pod)
    return all(is_owned_by(claim, each) is (each is wanted) for each in (stateful_set, pod))


def with_right_owner(claim: Json, stateful_set: Json, pod: Json) -> Json:
    """Return the claim owned as the table says, or by neither if somebody else controls it."""
    kept = [each for each in owner_references(claim) if not _names(each, stateful_set) and not _names(each, pod)]
    wanted = wanted_owner(stateful_set, pod)
    if wanted is not None and not has_unexpected_controller(claim, stateful_set, pod):
        kept.append(controller_ref(wanted))
    return {**claim, "metadata": {**metadata(claim), "ownerReferences": kept}}


def _names(reference: Json, owner: Json) -> bool:
    """Whether the reference is to an object of the owner's kind and name, if not to the owner itself."""
    return (reference.get("apiVersion"), reference.get("kind"), reference.get("name")) == (
        owner["apiVersion"],
        owner["kind"],
        name_of(owner),
    )
