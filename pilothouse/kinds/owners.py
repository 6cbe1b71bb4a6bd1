"""Owner references: who owns an object, and which one owner controls it."""

from __future__ import annotations

from pilothouse.machinery.objects import Json, name_of, uid_of


def owner_references(obj: Json) -> list[Json]:
    """Return `metadata.ownerReferences`; empty if there are none."""
    return (obj.get("metadata") or {}).get("ownerReferences") or []


def controller_of(obj: Json) -> Json | None:
    """Return the owner reference with `controller: true`; None for an orphan. Upstream: metav1.GetControllerOf."""
    owners = (obj.get("metadata") or {}).get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller")), None)


def is_controlled_by(obj: Json, owner: Json) -> bool:
    """Whether the owner is the controller of the object, compared by uid."""
    reference = controller_of(obj)
    return reference is not None and reference.get("uid") == uid_of(owner)


def is_owned_by(obj: Json, owner: Json) -> bool:
    """Whether any owner reference of the object names the owner, compared by uid."""
    uid = uid_of(owner)
    return any(reference.get("uid") == uid for reference in owner_references(obj))


def owner_ref(owner: Json) -> Json:
    """Return an owner reference to the owner, which must have apiVersion and kind."""
    return {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": name_of(owner), "uid": uid_of(owner)}


def controller_ref(owner: Json) -> Json:
    """Return the reference of an object that the owner controls. Upstream: metav1.NewControllerRef."""
    return {**owner_ref(owner), "controller": True, "blockOwnerDeletion": True}
