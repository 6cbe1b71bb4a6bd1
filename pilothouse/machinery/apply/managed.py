"""Field managers and their fields: decoded metadata.managedFields, and conflicts between managers.

A manager is identified by name, operation, subresource and, unless it applies, API version. A Scale owns one field of
its object, the replicas:

    object   k1 owns spec.replicas and spec.paused   → Scale   k1 owns spec.replicas
    Scale    k2 took spec.replicas                   → object  k1 owns spec.paused, k2 owns spec.replicas

`mappings`: API version → path of the replicas; managers of other versions are dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, NamedTuple

from pilothouse.machinery.apply import fieldset
from pilothouse.machinery.apply.elements import InvalidElement, encode
from pilothouse.machinery.apply.fieldset import FieldSet, Path, decode, shown_path
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json, metadata

APPLY, UPDATE = "Apply", "Update"


class InvalidManagedFields(ValueError):
    """Invalid managedFields; the message is upstream's."""


class ManagerId(NamedTuple):
    """Identity of a manager. `api_version` is empty for appliers, whose identity does not depend on the version."""

    name: str
    operation: str
    api_version: str
    subresource: str = ""

    @property
    def encoded(self) -> str:
        """Upstream's sort key of managers."""
        names = ("manager", "operation", "apiVersion", "subresource")
        return encode({key: value for key, value in zip(names, self, strict=True) if value})

    def __str__(self) -> str:
        text = quote(self.name)
        if self.subresource:
            text += f" with subresource {quote(self.subresource)}"
        return f"{text} using {self.api_version}" if self.operation == UPDATE else text


def manager_id(name: str, operation: str, api_version: str, subresource: str = "") -> ManagerId:
    return ManagerId(name, operation, "" if operation == APPLY else api_version, subresource)


@dataclass(frozen=True, slots=True)
class VersionedSet:
    """Field set in the terms of one API version."""

    fields: FieldSet
    api_version: str
    applied: bool

    def with_fields(self, fields: FieldSet) -> VersionedSet:
        return replace(self, fields=fields)


@dataclass(frozen=True, slots=True)
class Managed:
    """Managers with their fields and the times of their last changes."""

    sets: dict[ManagerId, VersionedSet] = field(default_factory=dict)
    times: dict[ManagerId, str] = field(default_factory=dict)


def decode_entries(entries: Iterable[Json] | None, *, stored: bool = False) -> Managed:
    """Decode managedFields. `stored` sets are canonical and not decoded again. Raises InvalidManagedFields."""
    managed = Managed()
    for position, entry in enumerate(entries or ()):
        if entry.get("operation") not in (APPLY, UPDATE):
            raise InvalidManagedFields("operation must be `Apply` or `Update`")
        if not entry.get("apiVersion"):
            raise InvalidManagedFields("apiVersion must not be empty")
        fields_type = entry.get("fieldsType") or ""
        if not fields_type:
            raise InvalidManagedFields(f"missing fieldsType in managed fields entry {position}")
        if fields_type != "FieldsV1":
            raise InvalidManagedFields(f"invalid fieldsType {quote(fields_type)} in managed fields entry {position}")
        operation, version = entry["operation"], entry["apiVersion"]
        manager = manager_id(entry.get("manager") or "", operation, version, entry.get("subresource") or "")
        try:
            fields = (entry.get("fieldsV1") or {}) if stored else decode(entry.get("fieldsV1"))
        except InvalidElement as error:
            raise InvalidManagedFields(f"error decoding set: {error}") from None
        managed.sets[manager] = VersionedSet(fields, version, operation == APPLY)
        if entry.get("time"):
            managed.times[manager] = entry["time"]
    return managed


def set_entries(obj: Json, entries: list[Json]) -> None:
    if entries:
        metadata(obj)["managedFields"] = entries
    else:
        metadata(obj).pop("managedFields", None)


def encode_entries(managed: Managed) -> list[Json]:
    """Encode managedFields: appliers first, then by age."""
    entries = [_entry(manager, versioned, managed.times) for manager, versioned in managed.sets.items()]
    return sorted(entries, key=_order) if len(entries) > 1 else entries


def _entry(manager: ManagerId, versioned: VersionedSet, times: dict[ManagerId, str]) -> Json:
    """Return the entry with keys in Go's order."""
    entry: Json = {"manager": manager.name} if manager.name else {}
    entry["operation"] = APPLY if versioned.applied else UPDATE
    entry["apiVersion"] = versioned.api_version
    if manager in times:
        entry["time"] = times[manager]
    entry["fieldsType"] = "FieldsV1"
    entry["fieldsV1"] = versioned.fields
    if manager.subresource:
        entry["subresource"] = manager.subresource
    return entry


def _order(entry: Json) -> tuple[Any, ...]:
    names = ("operation", "time", "manager", "apiVersion", "subresource")
    return tuple(entry.get(name, "") for name in names)


@dataclass(frozen=True, slots=True)
class FieldManagerConflict:
    """Field of another manager that the apply would change."""

    manager: ManagerId
    path: Path

    @property
    def cause(self) -> Json:
        return {
            "reason": "FieldManagerConflict",
            "message": f"conflict with {self.manager}",
            "field": shown_path(self.path),
        }


class Conflicts(Exception):
    def __init__(self, conflicts: Sequence[FieldManagerConflict]) -> None:
        self.conflicts = tuple(conflicts)
        super().__init__(_message(self.conflicts))

    @property
    def causes(self) -> list[Json]:
        return [conflict.cause for conflict in self.conflicts]


def _message(conflicts: Sequence[FieldManagerConflict]) -> str:
    if len(conflicts) == 1:
        conflict = conflicts[0]
        return f"Apply failed with 1 conflict: conflict with {conflict.manager}: {shown_path(conflict.path)}"
    lines = []
    by_manager: dict[ManagerId, list[FieldManagerConflict]] = {}
    for conflict in conflicts:
        by_manager.setdefault(conflict.manager, []).append(conflict)
    for manager in sorted(by_manager, key=lambda manager: manager.encoded):
        lines.append(f"conflicts with {manager}:")
        lines += [f"- {shown_path(conflict.path)}" for conflict in by_manager[manager]]
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)


SCALE_VERSION = "autoscaling/v1"
REPLICAS: Path = ("f:spec", "f:replicas")


def to_scale(entries: Iterable[Json] | None, mappings: Mapping[str, Path]) -> list[Json]:
    """Return the managers that own the replicas. Raises InvalidManagedFields."""
    parent, out = decode_entries(entries), Managed()
    for manager, versioned in parent.sets.items():
        path = mappings.get(versioned.api_version)
        if path is not None and fieldset.has(versioned.fields, path):
            fields = fieldset.of_paths([REPLICAS])
            out.sets[manager] = VersionedSet(fields, SCALE_VERSION, versioned.applied)
            if manager in parent.times:
                out.times[manager] = parent.times[manager]
    return encode_entries(out)


def to_parent(
    parent_entries: Iterable[Json] | None,
    scale_entries: Iterable[Json] | None,
    *,
    api_version: str,
    mappings: Mapping[str, Path],
) -> list[Json]:
    """Return the object's entries after a write to its Scale. Raises InvalidManagedFields."""
    parent, scale = decode_entries(parent_entries), decode_entries(scale_entries)
    out = Managed(times=parent.times)
    for manager, versioned in parent.sets.items():
        path = mappings.get(versioned.api_version)
        if path is None:
            continue
        if not fieldset.has(versioned.fields, path) or scale.sets.pop(manager, None) is not None:
            out.sets[manager] = versioned
        elif remaining := fieldset.difference(versioned.fields, fieldset.of_paths([path])):
            out.sets[manager] = versioned.with_fields(remaining)
    for manager, versioned in scale.sets.items():
        if fieldset.has(versioned.fields, REPLICAS):
            fields = fieldset.of_paths([mappings[api_version]])
            out.sets[manager] = VersionedSet(fields, api_version, versioned.applied)
    return encode_entries(out)
