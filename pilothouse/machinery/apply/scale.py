"""Managed fields of an object and its Scale, which owns one field: the replicas.

    object   k1 owns spec.replicas and spec.paused   → Scale   k1 owns spec.replicas
    Scale    k2 took spec.replicas                   → object  k1 owns spec.paused, k2 owns spec.replicas

`mappings` is API version → path of the replicas; managers of other versions are dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pilothouse.machinery.apply import fieldset
from pilothouse.machinery.apply.fieldset import Path
from pilothouse.machinery.apply.managed import Managed, VersionedSet, decode_entries, encode_entries
from pilothouse.machinery.objects import Json

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
        elif left := fieldset.difference(versioned.fields, fieldset.of_paths([path])):
            out.sets[manager] = versioned.with_fields(left)
    for manager, versioned in scale.sets.items():
        if fieldset.has(versioned.fields, REPLICAS):
            fields = fieldset.of_paths([mappings[api_version]])
            out.sets[manager] = VersionedSet(fields, api_version, versioned.applied)
    return encode_entries(out)
