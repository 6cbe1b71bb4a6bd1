"""Owner references of a StatefulSet's claims, which determine when claims are garbage collected.

    | whenDeleted | whenScaled | pod within replicas | pod beyond replicas |
    |---|---|---|---|
    | Retain | Retain | none | none |
    | Delete | Retain | StatefulSet | StatefulSet |
    | Retain | Delete | none | pod |
    | Delete | Delete | StatefulSet | pod |

The owner reference is a controller reference. Claims with another controller, or with a stale owner of the same name,
are left alone.
"""

from __future__ import annotations

from pilothouse.controllers.statefulset.identity import ordinal_of, ordinals
from pilothouse.kinds.owners import controller_ref, is_owned_by, owner_references
from pilothouse.machinery.objects import Json, metadata, name_of, uid_of

_RETAIN, _DELETE = "Retain", "Delete"


def retention_policy(stateful_set: Json) -> tuple[str, str]:
    """Return (whenDeleted, whenScaled)."""
    policy = stateful_set["spec"].get("persistentVolumeClaimRetentionPolicy")
    if policy is None:
        return _RETAIN, _RETAIN
    return policy.get("whenDeleted") or _RETAIN, policy.get("whenScaled") or _RETAIN


def wanted_owner(stateful_set: Json, pod: Json) -> Json | None:
    """Return the StatefulSet, the pod, or None, according to the table."""
    when_deleted, when_scaled = retention_policy(stateful_set)
    if when_scaled == _DELETE and ordinal_of(pod) not in ordinals(stateful_set):
        return pod
    return stateful_set if when_deleted == _DELETE else None


def has_unexpected_controller(claim: Json, stateful_set: Json, pod: Json) -> bool:
    """Return whether the policy deletes claims but another controller owns this one."""
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
    """Return whether the claim is owned by a former object with the owner's kind and name."""
    reference = next((each for each in owner_references(claim) if _names(each, owner)), None)
    return reference is not None and reference.get("uid") != uid_of(owner)


def is_owner_up_to_date(claim: Json, stateful_set: Json, pod: Json) -> bool:
    """Return whether the claim has the owner in the table, or must not be changed."""
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
    """Return the claim with the owner in the table; with neither owner if another controller owns the claim."""
    kept = [each for each in owner_references(claim) if not _names(each, stateful_set) and not _names(each, pod)]
    wanted = wanted_owner(stateful_set, pod)
    if wanted is not None and not has_unexpected_controller(claim, stateful_set, pod):
        kept.append(controller_ref(wanted))
    return {**claim, "metadata": {**metadata(claim), "ownerReferences": kept}}


def _names(reference: Json, owner: Json) -> bool:
    """Return whether the reference has the owner's kind and name; the uid may differ."""
    return (reference.get("apiVersion"), reference.get("kind"), reference.get("name")) == (
        owner["apiVersion"],
        owner["kind"],
        name_of(owner),
    )
