"""Validation of the spec of persistent volume claims and claim templates."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.kube.validation.fields import dns_label, dns_subdomain, non_empty, one_of, positive_quantity
from pilothouse.kube.validation.resource_names import validate_resource_amount
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import Errors, Path, forbidden, invalid, not_supported, required
from pilothouse.machinery.objects import Json
from pilothouse.machinery.quantity import parse_quantity
from pilothouse.machinery.validation.labels import LabelSelectorRules, validate_label_selector, validate_labels
from pilothouse.machinery.validation.object_meta import validate_annotations

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")

_CLAIM = "PersistentVolumeClaim"
_NOT_IN_TEMPLATES = {
    "name": "name",
    "generateName": "generateName",
    "namespace": "namespace",
    "selfLink": "selfLink",
    "uid": "uID",
    "resourceVersion": "resourceVersion",
    "generation": "generation",
    "creationTimestamp": "creationTimestamp",
    "deletionTimestamp": "deletionTimestamp",
    "deletionGracePeriodSeconds": "deletionGracePeriodSeconds",
    "ownerReferences": "ownerReferences",
    "finalizers": "finalizers",
    "managedFields": "managedFields",
}
"""Metadata forbidden in templates, with upstream's spelling in errors."""


@dataclass(frozen=True, slots=True)
class ClaimRules:
    """Faults that a stored claim may keep."""

    allow_invalid_selector_values: bool = False
    allow_invalid_data_source_group: bool = False


NEW_CLAIM = ClaimRules()


def validate_claim_template(template: Json, path: Path, rules: ClaimRules = NEW_CLAIM) -> Errors:
    yield from validate_template_metadata(template.get("metadata") or {}, path.child("metadata"))
    yield from validate_claim_spec(template.get("spec") or {}, path.child("spec"), rules)


def validate_template_metadata(meta: Json, path: Path) -> Errors:
    """Require labels and annotations only."""
    yield from validate_annotations(meta.get("annotations"), path.child("annotations"))
    yield from validate_labels(meta.get("labels"), path.child("labels"))
    for name, shown in _NOT_IN_TEMPLATES.items():
        if meta.get(name) is not None:
            yield forbidden(path.child(shown), "cannot be set")


def validate_claim_spec(spec: Json, path: Path, rules: ClaimRules = NEW_CLAIM) -> Errors:
    if not spec.get("accessModes"):
        yield required(path.child("accessModes"), "at least 1 access mode is required")
    selector_rules = LabelSelectorRules(allow_invalid_values=rules.allow_invalid_selector_values)
    yield from validate_label_selector(spec.get("selector"), path.child("selector"), selector_rules)
    yield from validate_access_modes(spec.get("accessModes") or (), path.child("accessModes"))
    storage_path = path.child("resources").key("storage")
    text = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if text is None:
        yield required(storage_path)
    else:
        errors = list(positive_quantity(parse_quantity(text), storage_path))
        yield from errors or validate_resource_amount("storage", text, storage_path)
    if spec.get("storageClassName"):
        yield from dns_subdomain(spec["storageClassName"], path.child("storageClassName"))
    if spec.get("volumeMode") is not None:
        yield from one_of(spec["volumeMode"], path.child("volumeMode"), VOLUME_MODES)
    yield from _validate_data_sources(spec, path, rules)
    if spec.get("volumeAttributesClassName"):
        yield from dns_subdomain(spec["volumeAttributesClassName"], path.child("volumeAttributesClassName"))


def validate_access_modes(modes: Iterable[str], path: Path) -> Errors:
    known = {mode for mode in modes if mode in ACCESS_MODES}
    for mode in modes:
        if mode not in known:
            yield not_supported(path, mode, ACCESS_MODES)
    if "ReadWriteOncePod" in known and len(known) > 1:
        yield forbidden(path, "may not use ReadWriteOncePod with other access modes")


def _validate_data_sources(spec: Json, path: Path, rules: ClaimRules) -> Errors:
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None:
        yield from _validate_data_source(source, path.child("dataSource"), rules)
    if reference is not None:
        yield from _validate_data_source(reference, path.child("dataSourceRef"), rules)
        if reference.get("namespace"):
            yield from dns_label(reference["namespace"], path.child("dataSourceRef", "namespace"))
    if source is None or reference is None:
        return
    # Upstream reports a path as the invalid value, which prints as an empty object.
    if reference.get("namespace"):
        yield invalid(path, {}, "may not be specified when dataSourceRef.namespace is specified")
    elif any(source.get(name) != reference.get(name) for name in ("apiGroup", "kind", "name")):
        yield invalid(path, {}, "must match dataSourceRef")


def _validate_data_source(source: Json, path: Path, rules: ClaimRules) -> Errors:
    yield from non_empty(source.get("name"), path.child("name"))
    yield from non_empty(source.get("kind"), path.child("kind"))
    group, kind = source.get("apiGroup") or "", source.get("kind") or ""
    if not group and kind != _CLAIM:
        yield invalid(path, kind, f"must be '{_CLAIM}' when referencing the default apiGroup")
    if group and not rules.allow_invalid_data_source_group:
        yield from dns_subdomain(group, path.child("apiGroup"))
