"""Validation of persistent volume specs, in volumes and in volume attachments, and of updates."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from copy import deepcopy

from pilothouse.kube.core.persistentvolumes.sources import source_of, validate_sources
from pilothouse.kube.core.pods.internal_form import difference, internal_form
from pilothouse.kube.validation.fields import dns_subdomain, one_of, positive_quantity
from pilothouse.kube.validation.selectors import BETA_TO_GA, validate_node_selector
from pilothouse.kube.validation.volume_claims import VOLUME_MODES, validate_access_modes
from pilothouse.machinery.field import Errors, Path, forbidden, invalid, not_supported, required, root
from pilothouse.machinery.objects import Json, items, part, text
from pilothouse.machinery.quantity import parse_quantity
from pilothouse.machinery.validation.immutable import FIELD_IMMUTABLE, semantically_equal

RECLAIM_POLICIES = ("Delete", "Recycle", "Retain")

_NOT_INLINE = "may not be specified in the context of inline volumes"


def validate_volume_spec(spec: Json, volume_name: str, path: Path, *, allow_invalid_values: bool = False) -> Errors:
    """`allow_invalid_values`: the stored node affinity already has invalid values."""
    yield from _validate_required_access_modes(items(spec, "accessModes"), path.child("accessModes"))
    capacity = spec.get("capacity")
    capacity_path = path.child("capacity")
    if not capacity:
        yield required(capacity_path)
    if capacity is None or capacity.keys() != {"storage"}:
        yield not_supported(
            capacity_path, capacity if capacity is None else dict(sorted(capacity.items())), ("storage",)
        )
    for name, amount in sorted((capacity or {}).items()):
        yield from validate_basic_amount(amount, capacity_path.key(name))
        yield from positive_quantity(parse_quantity(amount), capacity_path.key(name))
    if policy := text(spec, "persistentVolumeReclaimPolicy"):
        yield from one_of(policy, path.child("persistentVolumeReclaimPolicy"), RECLAIM_POLICIES)
    if spec.get("nodeAffinity") is not None:
        at = path.child("nodeAffinity")
        affinity = spec["nodeAffinity"]
        if affinity.get("required") is None:
            yield required(at.child("required"), "must specify required node constraints")
        else:
            selector = affinity["required"]
            yield from validate_node_selector(selector, at.child("required"), allow_invalid_values=allow_invalid_values)
    yield from validate_sources(spec, volume_name, path)
    yield from _validate_recycling(spec, path)
    if spec.get("storageClassName"):
        yield from dns_subdomain(spec["storageClassName"], path.child("storageClassName"))
    if spec.get("volumeMode") is not None:
        yield from one_of(spec["volumeMode"], path.child("volumeMode"), VOLUME_MODES)
    name, at = spec.get("volumeAttributesClassName"), path.child("volumeAttributesClassName")
    if name is not None:
        if not name:
            yield required(at, "an empty string is disallowed")
        else:
            yield from dns_subdomain(name, at)
        if spec.get("csi") is None:
            yield required(path.child("csi"), "has to be specified when using volumeAttributesClassName")


def validate_inline_spec(spec: Json, path: Path) -> Errors:
    """Validate the inline volume spec of an attachment."""
    if spec.get("claimRef") is not None:
        yield forbidden(path.child("claimRef"), _NOT_INLINE)
    if spec.get("capacity"):
        yield forbidden(path.child("capacity"), _NOT_INLINE)
    if spec.get("csi") is None:
        yield required(path.child("csi"), "has to be specified in the context of inline volumes")
    yield from _validate_required_access_modes(items(spec, "accessModes"), path.child("accessModes"))
    if text(spec, "persistentVolumeReclaimPolicy") not in ("", "Retain"):
        reason = "may only be Retain in the context of inline volumes"
        yield forbidden(path.child("persistentVolumeReclaimPolicy"), reason)
    if spec.get("nodeAffinity") is not None:
        yield forbidden(path.child("nodeAffinity"), _NOT_INLINE)
    yield from validate_sources(spec, "", path)
    yield from _validate_recycling(spec, path)
    if spec.get("storageClassName"):
        yield forbidden(path.child("storageClassName"), _NOT_INLINE)
    if spec.get("volumeMode") not in (None, "Filesystem"):
        reason = "may not specify volumeMode other than Filesystem in the context of inline volumes"
        yield forbidden(path.child("volumeMode"), reason)


def _validate_required_access_modes(modes: Sequence[str], path: Path) -> Errors:
    if not modes:
        yield required(path)
    yield from validate_access_modes(modes, path)


def validate_basic_amount(amount: str, path: Path) -> Errors:
    value = parse_quantity(amount).value()
    if value < 0:
        yield invalid(path, value, "must be a valid resource quantity")


def _validate_recycling(spec: Json, path: Path) -> Errors:
    """Reject recycling of a host's root directory: recycling would erase the host."""
    root_path = posixpath.normpath(text(spec, "hostPath", "path") or ".")
    if root_path in ("/", "//") and text(spec, "persistentVolumeReclaimPolicy") == "Recycle":
        reason = "may not be 'recycle' for a hostPath mount of '/'"
        yield forbidden(path.child("persistentVolumeReclaimPolicy"), reason)


def validate_source_unchanged(spec: Json, old: Json) -> Errors:
    new, before = deepcopy(source_of(spec)), source_of(old)
    # controllerExpandSecretRef may be added later: the field is newer than many drivers.
    if "controllerExpandSecretRef" not in part(before, "csi"):
        part(new, "csi").pop("controllerExpandSecretRef", None)
    if semantically_equal(new, before):
        return
    diff = difference(internal_form("PersistentVolumeSource", before), internal_form("PersistentVolumeSource", new))
    reason = f"spec.persistentvolumesource is immutable after creation\n{diff}"
    yield forbidden(root("spec", "persistentvolumesource"), reason)


def validate_affinity_unchanged(affinity: Json | None, old: Json) -> Errors:
    if not semantically_equal(affinity, old) and not semantically_equal(affinity, _with_ga_labels(old, affinity)):
        reason = f"{FIELD_IMMUTABLE}, except for updating from beta label to GA"
        yield invalid(root("nodeAffinity"), internal_form("VolumeNodeAffinity", affinity), reason)


def _with_ga_labels(old: Json, affinity: Json | None) -> Json:
    """Return the old affinity with beta label keys replaced where the new affinity has the GA keys."""
    replaced = deepcopy(old)
    terms = part(affinity or {}, "required").get("nodeSelectorTerms") or ()
    for term, before in zip(terms, part(replaced, "required").get("nodeSelectorTerms") or (), strict=False):
        pairs = zip(term.get("matchExpressions") or (), before.get("matchExpressions") or (), strict=False)
        for new, requirement in pairs:
            if BETA_TO_GA.get(requirement.get("key") or "") == new.get("key"):
                requirement["key"] = new["key"]
    return replaced


def validate_attributes_class_kept(spec: Json, old: Json) -> Errors:
    if old.get("volumeAttributesClassName") is not None and spec.get("volumeAttributesClassName") is None:
        reason = "update from non-nil value to nil is forbidden"
        yield forbidden(root("spec", "volumeAttributesClassName"), reason)
