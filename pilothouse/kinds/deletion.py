"""Deletion of an object: whether it has begun, when, and with how much grace.

The server sets `metadata.deletionTimestamp` when an object is deleted that finalizers or a grace period keep. The
timestamp is the end of the grace period, never its beginning.
"""

from __future__ import annotations

from datetime import datetime

from pilothouse.machinery.objects import Json
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
