"""Finalizers: names in `metadata.finalizers` that keep an object until their owners remove them.

`add_finalizer` changes the object. `with_finalizer` and `without_finalizer` return changed copies, for objects that
belong to a cache.
"""

from __future__ import annotations

from pilothouse.kinds.deletion import is_deleting
from pilothouse.machinery.objects import Json, metadata


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
    kept = [name for name in finalizers_of(obj) if name != finalizer]
    return {**obj, "metadata": {**metadata(obj), "finalizers": kept}}


def is_deletion_candidate(obj: Json, finalizer: str) -> bool:
    """Whether the object is being deleted and the finalizer still keeps it."""
    return is_deleting(obj) and has_finalizer(obj, finalizer)


def needs_finalizer(obj: Json, finalizer: str) -> bool:
    """Whether the object lacks the finalizer and can still get it: a deletion that has begun admits no new ones."""
    return not is_deleting(obj) and not has_finalizer(obj, finalizer)
