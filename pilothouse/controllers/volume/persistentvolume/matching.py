"""Claims, volumes and classes: the choice of a volume for a claim, and accessors for fields and binding annotations.

A claim gets a reserved volume, else the smallest sufficient volume.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from pilothouse.kinds.deletion import is_deleting
from pilothouse.machinery.objects import (
    Json,
    annotations_of,
    labels_of,
    metadata,
    name_of,
    namespace_of,
    part,
    text,
    uid_of,
)
from pilothouse.machinery.quantity import Quantity, parse_quantity
from pilothouse.machinery.selectors.labels import from_label_selector

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


def best_match(claim: Json, volumes: Iterable[Json], *, delayed: bool) -> Json | None:
    """Return the best volume for the claim. With `delayed`, the scheduler chooses, so only a reserved volume matches.

    Volumes with fewer access modes are preferred as closer matches.
    """
    by_modes: dict[frozenset[str], list[Json]] = defaultdict(list)
    for volume in volumes:
        if access_modes(claim) <= access_modes(volume):
            by_modes[access_modes(volume)].append(volume)
    for modes in sorted(by_modes, key=lambda modes: (len(modes), *sorted(modes))):
        if (best := _best_of(claim, by_modes[modes], delayed)) is not None:
            return best
    return None


def _best_of(claim: Json, volumes: list[Json], delayed: bool) -> Json | None:
    fitting = [
        volume
        for volume in volumes
        if (
            (claim_ref(volume) is None or is_bound_to(volume, claim))
            and _size(volume) >= requested_size(claim)
            and volume_mode(volume) == volume_mode(claim)
            and attributes_class(volume) == attributes_class(claim)
            and not is_deleting(volume)
        )
    ]
    reserved = next((volume for volume in fitting if is_bound_to(volume, claim)), None)
    if reserved is not None or delayed:
        return reserved
    free = [volume for volume in fitting if _is_free_for(claim, volume)]
    return min(free, key=lambda volume: (_size(volume), name_of(volume)), default=None)


def _is_free_for(claim: Json, volume: Json) -> bool:
    if phase_of(volume) != "Available" or class_of_volume(volume) != class_of_claim(claim):
        return False
    selector = claim["spec"].get("selector")
    return selector is None or from_label_selector(selector).matches(labels_of(volume))


def why_not(volume: Json, claim: Json) -> str:
    """Return the reason why the named volume does not fit the claim; empty if it fits."""
    if is_deleting(volume):
        return f'the volume is marked for deletion "{name_of(volume)}"'
    if _size(volume).value() < requested_size(claim).value():
        return "requested PV is too small"
    if class_of_volume(volume) != class_of_claim(claim):
        return "storageClassName does not match"
    if attributes_class(volume) != attributes_class(claim):
        return "volumeAttributesClassName does not match"
    if volume_mode(volume) != volume_mode(claim):
        return "incompatible volumeMode"
    return "" if access_modes(claim) <= access_modes(volume) else "incompatible accessMode"


def _size(volume: Json) -> Quantity:
    return storage_in(volume["spec"].get("capacity"))


def class_of_claim(claim: Json) -> str:
    return annotations_of(claim).get(_BETA_CLASS, claim["spec"].get("storageClassName")) or ""


def has_class(claim: Json) -> bool:
    """Return whether the claim sets a class; an empty class counts, and requests a volume without class."""
    return _BETA_CLASS in annotations_of(claim) or claim["spec"].get("storageClassName") is not None


def class_of_volume(volume: Json) -> str:
    return annotations_of(volume).get(_BETA_CLASS, volume["spec"].get("storageClassName")) or ""


def default_class(classes: Iterable[Json]) -> Json | None:
    """Return the newest default class."""
    marked = [class_ for class_ in classes if _is_default(class_)]
    newest = max((metadata(storage_class).get("creationTimestamp") or "" for storage_class in marked), default="")
    newest_classes = [
        storage_class for storage_class in marked if (metadata(storage_class).get("creationTimestamp") or "") == newest
    ]
    return min(newest_classes, key=name_of, default=None)


def _is_default(storage_class: Json) -> bool:
    annotations = annotations_of(storage_class)
    return annotations.get(_DEFAULT_CLASS) == "true" or annotations.get(_BETA_DEFAULT_CLASS) == "true"


def requested_size(claim: Json) -> Quantity:
    return storage_in(part(claim["spec"], "resources").get("requests"))


def storage_in(resources: Json | None) -> Quantity:
    storage = (resources or {}).get("storage")
    return _NOTHING if storage is None else parse_quantity(str(storage))


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
