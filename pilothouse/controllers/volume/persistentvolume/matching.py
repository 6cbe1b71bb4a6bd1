"""Choice of a volume for a claim: a reserved volume, else the smallest sufficient one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from pilothouse.controllers.volume.persistentvolume.fields import (
    access_modes,
    attributes_class,
    claim_ref,
    class_of_claim,
    class_of_volume,
    is_bound_to,
    phase_of,
    requested_size,
    storage_in,
    volume_mode,
)
from pilothouse.kinds.deletion import is_deleting
from pilothouse.machinery.objects import Json, labels_of, name_of
from pilothouse.machinery.quantity import Quantity
from pilothouse.machinery.selectors.labels import from_label_selector


def best_match(claim: Json, volumes: Iterable[Json], *, delayed: bool) -> Json | None:
    """Return the best volume for the claim. With `delayed`, the scheduler chooses, so only a reserved volume matches.

    Volumes with fewer access modes are preferred as closer matches.
    """
    by_modes: dict[frozenset[str], list[Json]] = defaultdict(list)
    for volume in volumes:
        if access_modes(claim) <= access_modes(volume):
            by_modes[access_modes(volume)].append(volume)
    for modes in sorted(by_modes, key=lambda modes: (len(modes), *sorted(modes))):
        if (found := _best_of(claim, by_modes[modes], delayed)) is not None:
            return found
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
