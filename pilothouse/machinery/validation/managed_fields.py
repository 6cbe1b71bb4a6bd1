"""Field managers, and the entries of metadata.managedFields."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.machinery.field import Errors, Path, invalid, too_long
from pilothouse.machinery.objects import Json

FIELD_MANAGER_MAX_LENGTH = 128
SUBRESOURCE_MAX_LENGTH = 256


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
