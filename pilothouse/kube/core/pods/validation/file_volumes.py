"""Volumes whose files come from the API: secrets, config maps and the pod's own fields."""

from __future__ import annotations

from pilothouse.kube.core.pods.validation.field_references import (
    VOLUME_FIELDS,
    validate_field_reference,
    validate_resource_reference,
)
from pilothouse.kube.validation.fields import local_non_reserved_path, non_empty
from pilothouse.machinery.field import Errors, Path, invalid, required
from pilothouse.machinery.objects import Json

_MAX_MODE = 0o777
_BAD_MODE = "must be a number between 0 and 0777 (octal), both inclusive"


def validate_mode(mode: int | None, path: Path) -> Errors:
    if mode is not None and not 0 <= mode <= _MAX_MODE:
        yield invalid(path, mode, _BAD_MODE)


def validate_secret(source: Json, path: Path) -> Errors:
    yield from _validate_keyed(source, "secretName", path)


def validate_config_map(source: Json, path: Path) -> Errors:
    yield from _validate_keyed(source, "name", path)


def _validate_keyed(source: Json, name_field: str, path: Path) -> Errors:
    yield from non_empty(source.get(name_field), path.child(name_field))
    yield from validate_mode(source.get("defaultMode"), path.child("defaultMode"))
    for position, item in enumerate(source.get("items") or ()):
        yield from validate_key_to_path(item, path.child("items").index(position))


def validate_key_to_path(item: Json, path: Path) -> Errors:
    yield from non_empty(item.get("key"), path.child("key"))
    yield from non_empty(item.get("path"), path.child("path"))
    yield from local_non_reserved_path(item.get("path") or "", path.child("path"))
    yield from validate_mode(item.get("mode"), path.child("mode"))


def validate_downward_api(source: Json, path: Path) -> Errors:
    yield from validate_mode(source.get("defaultMode"), path.child("defaultMode"))
    for file in source.get("items") or ():
        yield from validate_downward_file(file, path)


def validate_downward_file(file: Json, path: Path) -> Errors:
    """A file's errors stand under the volume, not under the file: upstream's choice."""
    yield from non_empty(file.get("path"), path.child("path"))
    yield from local_non_reserved_path(file.get("path") or "", path.child("path"))
    field, resource = file.get("fieldRef"), file.get("resourceFieldRef")
    if field is not None:
        yield from validate_field_reference(field, VOLUME_FIELDS, path.child("fieldRef"))
        if resource is not None:
            yield invalid(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously")
    elif resource is not None:
        yield from validate_resource_reference(resource, path.child("resourceFieldRef"), of_volume=True)
    else:
        yield required(path, "one of fieldRef and resourceFieldRef is required")
    yield from validate_mode(file.get("mode"), path.child("mode"))
