"""What an update of a persistent volume may not change."""

from __future__ import annotations

from copy import deepcopy

from pilothouse.kube.core.persistentvolumes.sources import source_of
from pilothouse.kube.core.pods.internal_form import difference, internal_form
from pilothouse.kube.validation.node_labels import BETA_TO_GA
from pilothouse.machinery.field import Errors, forbidden, invalid, root
from pilothouse.machinery.nested_fields import part
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.immutable import FIELD_IMMUTABLE, semantically_equal


def validate_source_unchanged(spec: Json, old: Json) -> Errors:
    new, before = deepcopy(source_of(spec)), source_of(old)
    # A secret for expansion may be added later: drivers learnt of it late.
    if "controllerExpandSecretRef" not in part(before, "csi"):
        part(new, "csi").pop("controllerExpandSecretRef", None)
    if semantically_equal(new, before):
        return
    shown = difference(internal_form("PersistentVolumeSource", before), internal_form("PersistentVolumeSource", new))
    why = f"spec.persistentvolumesource is immutable after creation\n{shown}"
    yield forbidden(root("spec", "persistentvolumesource"), why)


def validate_affinity_unchanged(affinity: Json | None, old: Json) -> Errors:
    if not semantically_equal(affinity, old) and not semantically_equal(affinity, _with_ga_labels(old, affinity)):
        why = f"{FIELD_IMMUTABLE}, except for updating from beta label to GA"
        yield invalid(root("nodeAffinity"), internal_form("VolumeNodeAffinity", affinity), why)


def _with_ga_labels(old: Json, affinity: Json | None) -> Json:
    """The old affinity with those label keys replaced that the new one has in their GA form."""
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
        why = "update from non-nil value to nil is forbidden"
        yield forbidden(root("spec", "volumeAttributesClassName"), why)
