"""Fields of an object that an update takes from the stored object, whatever the client sent.

Strategies call these functions in `prepare_for_update`. Values are shared with `old`, not copied: copy before you
modify.
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
    """Set the fields of `obj` to the values in `old`. Fields that `old` lacks are removed."""
    for field in fields:
        if field in old:
            obj[field] = old[field]
        else:
            obj.pop(field, None)


def carry_over_metadata(obj: Json, old: Json) -> None:
    """Set the metadata of `obj` to the metadata of `old`, except managedFields, which record the current write."""
    kept = dict(metadata(old))
    carry_over(kept, metadata(obj), "managedFields")
    obj["metadata"] = kept


def reset_object_meta_for_status(obj: Json, old: Json) -> None:
    """Undo changes of metadata that a status update must not make."""
    carry_over(metadata(obj), metadata(old), *_RESET_FOR_STATUS)


def begin_generation(obj: Json, old: Json) -> None:
    """Increment the generation of `old`: the spec has changed."""
    metadata(obj)["generation"] = generation_of(old) + 1


def generation_of(obj: Json) -> int:
    """Return the generation of an object; 0 if unset."""
    return metadata(obj).get("generation") or 0
