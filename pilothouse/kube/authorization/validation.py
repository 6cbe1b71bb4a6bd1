"""Validation of access reviews: exactly one of resource and non-resource attributes, and a subject."""

from __future__ import annotations

from pilothouse.kube.validation.internal_structs import TEXT, pointer, struct
from pilothouse.machinery.field import Errors, Path, invalid, required, root
from pilothouse.machinery.objects import METADATA_ORDER, Json, items, namespace_of, part, text
from pilothouse.machinery.validation.labels import (
    LabelSelectorRules,
    validate_field_requirement,
    validate_requirement,
)

# Newer clients may send unknown operators.
_LENIENT = LabelSelectorRules(allow_unknown_operator=True)

_shown_path = pointer(struct(Path=TEXT, Verb=TEXT))


def validate_self_review(obj: Json) -> Errors:
    yield from _validate_question(part(obj, "spec"))
    yield from validate_selectors(part(obj, "spec").get("resourceAttributes"), root("spec", "resourceAttributes"))
    yield from _validate_metadata(obj)


def validate_subject_review(obj: Json) -> Errors:
    yield from _validate_subject_spec(part(obj, "spec"))
    yield from _validate_metadata(obj)


def validate_local_review(obj: Json) -> Errors:
    spec, path = part(obj, "spec"), root("spec")
    yield from _validate_subject_spec(spec)
    yield from _validate_metadata(obj, "namespace")
    resource = spec.get("resourceAttributes")
    if resource is not None and text(resource, "namespace") != namespace_of(obj):
        where = path.child("resourceAttributes", "namespace")
        yield invalid(where, text(resource, "namespace"), "must match metadata.namespace")
    if spec.get("nonResourceAttributes") is not None:
        shown = _shown_path(spec["nonResourceAttributes"])
        yield invalid(path.child("nonResourceAttributes"), shown, "disallowed on this kind of request")


def _validate_subject_spec(spec: Json) -> Errors:
    yield from _validate_question(spec)
    if not text(spec, "user") and not items(spec, "groups"):
        yield invalid(root("spec", "user"), text(spec, "user"), "at least one of user or group must be specified")
    yield from validate_selectors(spec.get("resourceAttributes"), root("spec", "resourceAttributes"))


def _validate_question(spec: Json) -> Errors:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and path is not None:
        reason = "cannot be specified in combination with resourceAttributes"
        yield invalid(root("spec", "nonResourceAttributes"), _shown_path(path), reason)
    if resource is None and path is None:
        reason = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        yield invalid(root("spec", "resourceAttributes"), None, reason)


def _validate_metadata(obj: Json, *allowed: str) -> Errors:
    meta = part(obj, "metadata")
    if any(value for field, value in meta.items() if field not in ("managedFields", *allowed)):
        shown = {field: meta[field] for field in METADATA_ORDER if field in meta}
        yield invalid(root("metadata"), shown, "must be empty except for namespace" if allowed else "must be empty")


def validate_selectors(resource: Json | None, path: Path) -> Errors:
    if resource is None:
        return
    for field, check in (("fieldSelector", validate_field_requirement), ("labelSelector", validate_requirement)):
        selector, where = resource.get(field), path.child(field)
        if selector is None:
            continue
        raw, requirements = text(selector, "rawSelector"), items(selector, "requirements")
        if raw and requirements:
            reason = "may not specified at the same time as requirements"
            yield invalid(where.child("rawSelector"), raw, reason)
        if not raw and not requirements:
            reason = f"when {where} is specified, requirements or rawSelector is required"
            yield required(where.child("requirements"), reason)
        for position, requirement in enumerate(requirements):
            yield from check(requirement, where.child("requirements").index(position), _LENIENT)
