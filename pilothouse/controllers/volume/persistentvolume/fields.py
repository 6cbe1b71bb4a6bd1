"""Accessors for claims, volumes and classes, and the annotations that record binding state."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.machinery.objects import Json, annotations_of, metadata, name_of, namespace_of, part, text, uid_of
from pilothouse.machinery.quantity import Quantity, parse_quantity

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
"""Claim annotation: the claim has been bound."""
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
"""Claim or volume annotation: the binding was made by the controller, not by a user."""
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
STORAGE_PROVISIONER = "volume.kubernetes.io/storage-provisioner"
BETA_STORAGE_PROVISIONER = "volume.beta.kubernetes.io/storage-provisioner"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""Claim annotation: the node chosen by the scheduler for the first pod."""
MIGRATED_TO = "pv.kubernetes.io/migrated-to"
SIMULATED = "pilothouse.dev/simulated"
"""The provisioner implemented by this controller."""
_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_BETA_DEFAULT_CLASS = "storageclass.beta.kubernetes.io/is-default-class"
_NOTHING = parse_quantity("0")


def class_of_claim(claim: Json) -> str:
    return annotations_of(claim).get(_BETA_CLASS, claim["spec"].get("storageClassName")) or ""


def has_class(claim: Json) -> bool:
    """Return whether the claim sets a class; an empty class counts, and requests a volume without class."""
    return _BETA_CLASS in annotations_of(claim) or claim["spec"].get("storageClassName") is not None


def class_of_volume(volume: Json) -> str:
    return annotations_of(volume).get(_BETA_CLASS, volume["spec"].get("storageClassName")) or ""


def default_class(classes: Iterable[Json]) -> Json | None:
    """Return the newest default class."""
    marked = [each for each in classes if _is_default(each)]
    newest = max((metadata(each).get("creationTimestamp") or "" for each in marked), default="")
    found = [each for each in marked if (metadata(each).get("creationTimestamp") or "") == newest]
    return min(found, key=name_of, default=None)


def _is_default(each: Json) -> bool:
    said = annotations_of(each)
    return said.get(_DEFAULT_CLASS) == "true" or said.get(_BETA_DEFAULT_CLASS) == "true"


def requested_size(claim: Json) -> Quantity:
    return storage_in(part(claim["spec"], "resources").get("requests"))


def storage_in(resources: Json | None) -> Quantity:
    said = (resources or {}).get("storage")
    return _NOTHING if said is None else parse_quantity(str(said))


def volume_mode(obj: Json) -> str:
    return obj["spec"].get("volumeMode") or "Filesystem"


def attributes_class(obj: Json) -> str:
    return obj["spec"].get("volumeAttributesClassName") or ""


def access_modes(obj: Json) -> frozenset[str]:
    return frozenset(obj["spec"].get("accessModes") or ())


def claim_ref(volume: Json) -> Json | None:
    ref: Json | None = volume["spec"].get("claimRef")
    return ref


def claim_key_of(volume: Json) -> str:
    """Return namespace/name of the volume's claim; empty if there is none."""
    ref = claim_ref(volume)
    return f"{ref.get('namespace', '')}/{ref.get('name', '')}" if ref else ""


def is_bound_to(volume: Json, claim: Json) -> bool:
    """Return whether the volume is bound to the claim; without a uid in claimRef, the name decides."""
    ref = claim_ref(volume)
    if ref is None or (ref.get("namespace"), ref.get("name")) != (namespace_of(claim), name_of(claim)):
        return False
    return not ref.get("uid") or ref["uid"] == uid_of(claim)


def phase_of(obj: Json) -> str:
    return text(obj, "status", "phase")


def with_annotations(obj: Json, **changes: str) -> Json:
    """Return the object with annotations added, given as `**{NAME: value}`."""
    return {**obj, "metadata": {**metadata(obj), "annotations": {**annotations_of(obj), **changes}}}
