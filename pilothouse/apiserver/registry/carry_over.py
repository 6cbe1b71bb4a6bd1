"""The parts of an object that an update takes from the stored one, whatever its writer sent.

Strategies call these in `prepare_for_update`. Nothing is copied: a strategy that goes on to change a part copies it.
"""

from __future__ import annotations

from pilothouse.machinery.objects import Json, metadata

_RESET_FOR_STATUS = (
    "deletionTimestamp",
    "generation",
    "selfLink",
    "labels",
    "annotations",
    "finalizers",
    "ownerReferences",
)


def carry_over(obj: Json, old: Json, *fields: str) -> None:
    """Give `obj` the fields as `old` has them: a field that `old` lacks is removed."""
    for field in fields:
        if field in old:
            obj[field] = old[field]
        else:
            obj.pop(field, None)


def carry_over_metadata(obj: Json, old: Json) -> None:
    """Give `obj` the metadata of `old`, except for its managed fields: they record the very write that is prepared."""
    kept = dict(metadata(old))
    carry_over(kept, metadata(obj), "managedFields")
    obj["metadata"] = kept


def reset_object_meta_for_status(obj: Json, old: Json) -> None:
    """Undo what a write of the status cannot change in metadata, in the kinds that care."""
    carry_over(metadata(obj), metadata(old), *_RESET_FOR_STATUS)


def begin_generation(obj: Json, old: Json) -> None:
    """Count one generation more than `old` has: its spec, or what stands for it, has changed."""
    metadata(obj)["generation"] = generation_of(old) + 1


def generation_of(obj: Json) -> int:
    """Return the generation of an object, 0 where it has none."""
    return metadata(obj).get("generation") or 0
