"""Validation of metadata on create and update.

Errors have upstream's order. `meta` is the object's metadata, with the generated name already set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from pilothouse.machinery import version_rules
from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.machinery.field import (
    Errors,
    Path,
    forbidden,
    internal,
    invalid,
    required,
    root,
    too_long,
)
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupVersion, GroupVersionKind
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.immutable import validate_immutable_field
from pilothouse.machinery.validation.labels import validate_labels
from pilothouse.machinery.validation.names import ValidateName, is_qualified_name, name_is_dns_label
from pilothouse.machinery.validation.pattern_format import IS_NEGATIVE_ERROR

TOTAL_ANNOTATION_SIZE_LIMIT = 256 * 1024
BANNED_OWNERS = frozenset({GroupVersionKind("", "v1", "Event")})
METADATA = root("metadata")
VERSION_REQUIRED = "must be specified for an update"
FIELD_MANAGER_MAX_LENGTH = 128
SUBRESOURCE_MAX_LENGTH = 256

_MOST_REFERENCES_SHOWN = 10_000
"""Each excess controller reference repeats all references in its error, so the output would be quadratic."""
_OWNER_FIELDS = ("apiVersion", "kind", "name", "uid")
_OPTIONAL_OWNER_FIELDS = ("controller", "blockOwnerDeletion")
_IMMUTABLE = (
    ("name", ""),
    ("namespace", ""),
    ("uid", ""),
    ("creationTimestamp", None),
    ("deletionTimestamp", None),
    ("deletionGracePeriodSeconds", None),
)
"""(immutable field, default of a missing field), in upstream's order."""

_Check: TypeAlias = Callable[[Any, Path], Errors]


def validate_object_meta(
    meta: Json, *, namespaced: bool, name_rule: ValidateName, path: Path = METADATA, prefix_rule: bool = True
) -> Errors:
    """Validate metadata on create. prefix_rule: also validate generateName, not only the generated name."""
    name, prefix = meta.get("name") or "", meta.get("generateName") or ""
    if prefix and prefix_rule:
        for message in name_rule(prefix, True):
            yield invalid(path.child("generateName"), prefix, message)
    elif prefix and not name:
        reason = f"generateName was specified ({quote(prefix)}), but no name was generated"
        yield internal(path.child("name"), reason)
    if not name:
        yield required(path.child("name"), "name or generateName is required")
    else:
        for message in name_rule(name, False):
            yield invalid(path.child("name"), name, message)
    yield from _validate_namespace(meta.get("namespace") or "", namespaced, path)
    if generation := meta.get("generation"):
        yield from validate_nonnegative_field(generation, path.child("generation"))
    yield from _validate_present_fields(meta, _CHECKED_ON_CREATE, path)


def validate_object_meta_update(new: Json, old: Json, path: Path = METADATA) -> Errors:
    if old.get("deletionTimestamp"):
        yield from validate_no_new_finalizers(new.get("finalizers"), old.get("finalizers"), path.child("finalizers"))
    if not new.get("resourceVersion"):
        yield invalid(path.child("resourceVersion"), "", VERSION_REQUIRED)
    if (generation := new.get("generation") or 0) < (old.get("generation") or 0):
        yield invalid(path.child("generation"), generation, "must not be decremented")
    for name, zero in _IMMUTABLE:
        if (value := new.get(name, zero)) != (before := old.get(name, zero)):
            yield from validate_immutable_field(value, before, path.child(name))
    yield from _validate_present_fields(new, _CHECKED_ON_UPDATE, path)


def validate_nonnegative_field(value: int, path: Path) -> Errors:
    if value < 0:
        yield invalid(path, value, IS_NEGATIVE_ERROR)


def validate_annotations(annotations: Mapping[str, str] | None, path: Path) -> Errors:
    if not annotations:
        return
    for key in annotations:
        for message in is_qualified_name(key.lower()):
            yield invalid(path, key, message)
    if annotations_size(annotations) > TOTAL_ANNOTATION_SIZE_LIMIT:
        yield too_long(path, TOTAL_ANNOTATION_SIZE_LIMIT)


def annotations_size(annotations: Mapping[str, str]) -> int:
    """Return the total bytes of all keys and values."""
    return sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())


def validate_owner_references(references: list[Json] | None, path: Path) -> Errors:
    controller, printed = "", 0
    indexed = version_rules.holds("IndexedOwnerReferences")
    for position, reference in enumerate(references or ()):
        version = reference.get("apiVersion") or ""
        kind = _kind_of(version, reference.get("kind") or "")
        at = path.index(position) if indexed else path
        if indexed and not version:
            yield required(at.child("apiVersion"), "must not be empty")
        elif not kind.version:
            reason = "must be <group>/<version> or <version>" if indexed else "version must not be empty"
            yield invalid(at.child("apiVersion"), version, reason)
        for name in ("kind", "name", "uid"):
            if not reference.get(name):
                missing = "must not be empty"
                yield required(at.child(name), missing) if indexed else invalid(at.child(name), "", missing)
        if kind in BANNED_OWNERS:
            yield invalid(at, _printed([reference])[0], f"{kind} is disallowed from being an owner")
        if reference.get("controller"):
            found = f"{reference.get('kind') or ''}/{reference.get('name') or ''}"
            if controller and printed <= _MOST_REFERENCES_SHOWN:
                reason = 'Only one reference can have Controller set to true. Found "true" in references for'
                yield invalid(path, _printed(references or ()), f"{reason} {controller} and {found}")
                printed += len(references or ())
            controller = controller or found


def validate_finalizers(finalizers: list[str] | None, path: Path) -> Errors:
    names = finalizers or []
    for name in names:
        for message in is_qualified_name(name):
            yield invalid(path, name, message)
    if "orphan" in names and "foregroundDeletion" in names:
        yield invalid(path, names, "finalizer orphan and foregroundDeletion cannot be both set")


def validate_no_new_finalizers(new: Iterable[str] | None, old: Iterable[str] | None, path: Path) -> Errors:
    """Forbid new finalizers on an object with a deletionTimestamp."""
    if extra := sorted(set(new or ()) - set(old or ())):
        found = f"[]string{{{', '.join(map(quote, extra))}}}"
        reason = "no new finalizers can be added if the object is being deleted, found new finalizers"
        yield forbidden(path, f"{reason} {found}")


def _validate_namespace(namespace: str, namespaced: bool, path: Path) -> Errors:
    if not namespaced:
        if namespace:
            yield forbidden(path.child("namespace"), "not allowed on this type")
    elif not namespace:
        yield required(path.child("namespace"))
    else:
        for message in name_is_dns_label(namespace):
            yield invalid(path.child("namespace"), namespace, message)


def _validate_present_fields(meta: Json, checks: Mapping[str, _Check], path: Path) -> Errors:
    for name, check in checks.items():
        if part := meta.get(name):
            yield from check(part, path.child(name))


@bounded_cache(entries=1024, key_bytes=256)
def _kind_of(api_version: str, kind: str) -> GroupVersionKind:
    try:
        version = GroupVersion.parse(api_version)
    except ValueError:
        version = GroupVersion("", "")
    return version.kind(kind)


def _printed(references: Iterable[Json]) -> list[dict[str, Any]]:
    """Return owner references with upstream's field order, for messages."""
    return [
        {name: reference.get(name) or "" for name in _OWNER_FIELDS}
        | {name: reference[name] for name in _OPTIONAL_OWNER_FIELDS if reference.get(name) is not None}
        for reference in references
    ]


def validate_field_manager(manager: str, path: Path) -> Errors:
    if len(manager.encode()) > FIELD_MANAGER_MAX_LENGTH:
        yield too_long(path, FIELD_MANAGER_MAX_LENGTH)
    if manager.isprintable():
        return
    for position, char in enumerate(manager):
        if not char.isprintable():
            offset = len(manager[:position].encode())
            yield invalid(path, manager, f"invalid character U+{ord(char):04X} (at position {offset})")


def validate_managed_fields(entries: Iterable[Json] | None, path: Path) -> Errors:
    for position, entry in enumerate(entries or ()):
        yield from _validate_entry(entry, path.index(position))


def _validate_entry(entry: Json, path: Path) -> Errors:
    operation, fields_type = entry.get("operation") or "", entry.get("fieldsType") or ""
    if operation not in ("Apply", "Update"):
        yield invalid(path.child("operation"), operation, "must be `Apply` or `Update`")
    if fields_type not in ("", "FieldsV1"):
        yield invalid(path.child("fieldsType"), fields_type, "must be `FieldsV1`")
    yield from validate_field_manager(entry.get("manager") or "", path.child("manager"))
    if (subresource := entry.get("subresource")) and len(subresource.encode()) > SUBRESOURCE_MAX_LENGTH:
        yield too_long(path.child("subresource"), SUBRESOURCE_MAX_LENGTH)


_CHECKED_ON_UPDATE: dict[str, _Check] = {
    "labels": validate_labels,
    "annotations": validate_annotations,
    "ownerReferences": validate_owner_references,
    "managedFields": validate_managed_fields,
}
_CHECKED_ON_CREATE: dict[str, _Check] = {
    "labels": validate_labels,
    "annotations": validate_annotations,
    "ownerReferences": validate_owner_references,
    "finalizers": validate_finalizers,
    "managedFields": validate_managed_fields,
}
