"""Metadata that only the server sets, and fields that an update takes from the stored object."""

from __future__ import annotations

import os
from collections.abc import Callable

import orjson

from pilothouse.machinery.errors import BadRequest
from pilothouse.machinery.objects import Json, metadata
from pilothouse.machinery.times import now

_SYSTEM_FIELDS = ("creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")

_DUPLICATE_OWNERS = (
    ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, "
    "and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {uids}"
)


def wipe_system_fields(obj: Json) -> None:
    """Remove fields that clients must not set."""
    meta = metadata(obj)
    for field in _SYSTEM_FIELDS:
        meta.pop(field, None)


def fill_system_fields(obj: Json) -> None:
    meta = metadata(obj)
    meta["creationTimestamp"] = now()
    meta["uid"] = new_uid()


def new_uid() -> str:
    """Return a random (version 4) UUID. Formatted by hand: uuid.UUID takes longer than everything else here."""
    digits = os.urandom(16).hex()
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


def ensure_namespace(obj: Json, namespace: str) -> None:
    """Set the namespace of the request on the object. Raises BadRequest if the object names another namespace."""
    meta = metadata(obj)
    own = meta.get("namespace") or ""
    if own == namespace:
        return
    if own and namespace:
        message = "the namespace of the provided object does not match the namespace sent on the request"
        raise BadRequest(message)
    if namespace:
        meta["namespace"] = namespace
    else:
        meta.pop("namespace", None)


def dedup_owner_references(obj: Json, warn: Callable[[str], None], *, after_admission: bool = False) -> None:
    """Remove duplicate owner references, and warn the client."""
    references = metadata(obj).get("ownerReferences")
    if not references or len(references) < 2:
        return
    kept: dict[bytes, Json] = {}
    duplicates: list[str] = []
    for reference in references:
        # Compared by text: a client may send as many references as fit into a body.
        text = orjson.dumps(reference, option=orjson.OPT_SORT_KEYS)
        if text in kept:
            duplicates.append(reference["uid"])
        kept[text] = reference
    if duplicates:
        when = " after mutating admission happens" if after_admission else ""
        warn(_DUPLICATE_OWNERS.format(when=when, uids=", ".join(duplicates)))
        metadata(obj)["ownerReferences"] = list(kept.values())


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
    """Set the fields of `obj` to the values in `old`; for `prepare_for_update` of strategies. Fields that `old` lacks
    are removed. Values are shared with `old`, not copied: copy before you modify."""
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
