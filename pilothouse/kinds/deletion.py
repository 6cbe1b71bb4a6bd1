"""Deletion of an object: its time and grace period, and the finalizers that delay its removal.

`add_finalizer` changes the object. `with_finalizer` and `without_finalizer` return changed copies, for objects that
belong to a cache.
"""

from __future__ import annotations

from datetime import datetime

from pilothouse.machinery.objects import Json, metadata
from pilothouse.machinery.times import parse_time, shifted


def is_deleting(obj: Json) -> bool:
    """Whether the object has a deletionTimestamp: it is marked for deletion and not yet removed.

    >>> is_deleting({"metadata": {"deletionTimestamp": "2024-02-01T12:00:00Z"}}), is_deleting({})
    (True, False)
    """
    return bool((obj.get("metadata") or {}).get("deletionTimestamp"))


def deletion_time(obj: Json) -> datetime | None:
    """Return the deletionTimestamp, which is the end of the grace period; None if the object is not being deleted."""
    text = (obj.get("metadata") or {}).get("deletionTimestamp")
    return parse_time(text) if text else None


def grace_period(obj: Json) -> int:
    """Return `metadata.deletionGracePeriodSeconds`; 0 if unset."""
    return (obj.get("metadata") or {}).get("deletionGracePeriodSeconds") or 0


def deletion_requested(obj: Json) -> datetime | None:
    """Return when the deletion was requested: the deletionTimestamp less the grace period. None if it was not."""
    ends = deletion_time(obj)
    return None if ends is None else shifted(ends, -grace_period(obj))


def is_deleted_without_grace(obj: Json) -> bool:
    """Whether the object is being deleted with an explicit grace period of 0.

    A pod in this state is already stopped on its node, or was deleted by force.
    """
    meta = obj.get("metadata") or {}
    return bool(meta.get("deletionTimestamp")) and meta.get("deletionGracePeriodSeconds") == 0


def finalizers_of(obj: Json) -> list[str]:
    """Return `metadata.finalizers`; empty if there are none."""
    return (obj.get("metadata") or {}).get("finalizers") or []


def has_finalizer(obj: Json, finalizer: str) -> bool:
    return finalizer in finalizers_of(obj)


def add_finalizer(obj: Json, finalizer: str) -> None:
    """Append the finalizer to the object, unless it is present."""
    if not has_finalizer(obj, finalizer):
        metadata(obj)["finalizers"] = [*finalizers_of(obj), finalizer]


def with_finalizer(obj: Json, finalizer: str) -> Json:
    """Return a shallow copy of the object with the finalizer appended."""
    return {**obj, "metadata": {**metadata(obj), "finalizers": [*finalizers_of(obj), finalizer]}}


def without_finalizer(obj: Json, finalizer: str) -> Json:
    """Return a shallow copy of the object without the finalizer."""
    remaining = [name for name in finalizers_of(obj) if name != finalizer]
    return {**obj, "metadata": {**metadata(obj), "finalizers": remaining}}


def is_deletion_candidate(obj: Json, finalizer: str) -> bool:
    """Whether the object is being deleted and the finalizer still keeps it."""
    return is_deleting(obj) and has_finalizer(obj, finalizer)


def needs_finalizer(obj: Json, finalizer: str) -> bool:
    """Whether the object lacks the finalizer and can still get it: a deletion that has begun admits no new ones."""
    return not is_deleting(obj) and not has_finalizer(obj, finalizer)
