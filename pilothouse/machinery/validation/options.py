"""Validation of CreateOptions, UpdateOptions, PatchOptions and DeleteOptions."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.machinery.field import Errors, Path, forbidden, invalid, not_supported, required, root
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.object_meta import validate_field_manager

APPLY_PATCH_TYPES = frozenset({"application/apply-patch+yaml", "application/apply-patch+cbor"})

_PROPAGATION_POLICIES = ("Foreground", "Background", "Orphan")
_FIELD_VALIDATIONS = ("", "Ignore", "Strict", "Warn")


def validate_create_options(options: Json) -> Errors:
    yield from validate_field_manager(options.get("fieldManager") or "", root("fieldManager"))
    yield from validate_dry_run(options.get("dryRun"), root("dryRun"))
    yield from validate_field_validation(options.get("fieldValidation") or "", root("fieldValidation"))


def validate_update_options(options: Json) -> Errors:
    return validate_create_options(options)


def validate_patch_options(options: Json, patch_type: str) -> Errors:
    if patch_type in APPLY_PATCH_TYPES:
        if not options.get("fieldManager"):
            yield required(root("fieldManager"), "is required for apply patch")
    elif options.get("force") is not None:
        yield forbidden(root("force"), "may not be specified for non-apply patch")
    yield from validate_create_options(options)


def validate_delete_options(options: Json) -> Errors:
    path, policy = root("propagationPolicy"), options.get("propagationPolicy")
    if policy is not None and options.get("orphanDependents") is not None:
        yield invalid(path, policy, "orphanDependents and deletionPropagation cannot be both set")
    if policy is not None and policy not in _PROPAGATION_POLICIES:
        yield not_supported(path, policy, (*_PROPAGATION_POLICIES, "nil"))
    yield from validate_dry_run(options.get("dryRun"), root("dryRun"))


def validate_dry_run(dry_run: Iterable[str] | None, path: Path) -> Errors:
    stages = list(dry_run or ())
    if any(stage != "All" for stage in stages):
        yield not_supported(path, stages, ["All"])


def validate_field_validation(value: str, path: Path) -> Errors:
    if value not in _FIELD_VALIDATIONS:
        yield not_supported(path, value, _FIELD_VALIDATIONS, plain=True)
