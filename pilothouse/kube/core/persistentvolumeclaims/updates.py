"""Validation of an update of a claim: it may change little, so that quotas and limits can not be gamed."""

from __future__ import annotations

from copy import deepcopy

from pilothouse.kube.core.persistentvolumes.warnings import BETA_STORAGE_CLASS
from pilothouse.kube.core.pods.internal_form import difference, internal_form
from pilothouse.machinery.field import Errors, forbidden, invalid, root
from pilothouse.machinery.objects import Json, annotations_of, part, text
from pilothouse.machinery.quantity import ZERO, Quantity, parse_quantity
from pilothouse.machinery.validation.immutable import FIELD_IMMUTABLE, semantically_equal, validate_immutable_field

_SPEC = "PersistentVolumeClaimSpec"


def validate_claim_update(obj: Json, old: Json) -> Errors:
    """Validate the fields that may not change. Metadata, and the rules for new claims, are checked elsewhere."""
    spec, before = deepcopy(obj["spec"]), deepcopy(old["spec"])
    if not before.get("volumeName"):
        _copy(spec, before, "volumeName")
    yield from _settle_storage_class(obj, old, spec)
    if text(obj, "status", "phase") == "Bound":
        requests = part(spec, "resources").get("requests")
        if requests is not None:
            requests["storage"] = part(before, "resources", "requests").get("storage") or "0"
        _copy(before, spec, "volumeAttributesClassName")
    if not semantically_equal(spec, before):
        shown = difference(internal_form(_SPEC, before), internal_form(_SPEC, spec))
        why = (
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
        )
        yield forbidden(root("spec"), f"{why}\n{shown}")
    yield from _validate_size(obj, old)
    modes = obj["spec"].get("volumeMode"), old["spec"].get("volumeMode")
    yield from validate_immutable_field(*modes, root("volumeMode"))
    yield from _validate_attributes_class(obj, old)


def _copy(source: Json, target: Json, field: str) -> None:
    target.pop(field, None)
    if field in source:
        target[field] = source[field]


def _settle_storage_class(obj: Json, old: Json, spec: Json) -> Errors:
    """A claim may get a class that it did not have, or have its class moved from the annotation to the field."""
    named, given = old["spec"].get("storageClassName"), obj["spec"].get("storageClassName")
    before, after = (annotations_of(each).get(BETA_STORAGE_CLASS) for each in (old, obj))
    if before is not None and named is None and given == before and after in (None, before):
        spec.pop("storageClassName")
        return
    if (before or "") != (after or ""):
        yield invalid(root("metadata", "annotations", BETA_STORAGE_CLASS), after or "", FIELD_IMMUTABLE)
    if given is not None and named is None and before in (None, given):
        spec.pop("storageClassName")


def _validate_size(obj: Json, old: Json) -> Errors:
    """A claim shrinks only to take back an expansion that failed, and never below what it has."""
    size = _storage(part(obj, "spec", "resources", "requests"))
    if size >= _storage(part(old, "spec", "resources", "requests")):
        return
    if size <= _storage(part(old, "status", "capacity")):
        path = root("spec", "resources", "requests", "storage")
        yield forbidden(path, "field can not be less than status.capacity")


def _storage(amounts: Json) -> Quantity:
    return parse_quantity(amounts["storage"]) if "storage" in amounts else ZERO


def _validate_attributes_class(obj: Json, old: Json) -> Errors:
    name = obj["spec"].get("volumeAttributesClassName")
    if name == old["spec"].get("volumeAttributesClassName"):
        return
    if part(old, "status").get("currentVolumeAttributesClassName") is None or name:
        return
    change = "nil" if name is None else "empty string"
    why = f"update to {change} is forbidden when status.currentVolumeAttributesClassName is not nil"
    yield forbidden(root("spec", "volumeAttributesClassName"), why)
