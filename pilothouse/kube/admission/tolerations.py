"""Joining two lists of tolerations without keeping what others cover already."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.machinery.objects import Json


def merge_tolerations(first: Sequence[Json], second: Sequence[Json]) -> list[Json]:
    """Return both lists without the tolerations that others cover; of equal ones the first is kept."""
    every = [*first, *second]
    merged: list[Json] = []
    for position, toleration in enumerate(every):
        following = (other for other in every[position + 1 :] if other != toleration)
        if not any(covers(other, toleration) for other in (*merged, *following)):
            merged.append(toleration)
    return merged


def covers(wide: Json, narrow: Json) -> bool:
    """Whether `wide` tolerates everything that `narrow` does."""
    if wide == narrow:
        return True
    exists = wide.get("operator") == "Exists"
    if wide.get("key") != narrow.get("key") and (wide.get("key") or not exists):
        return False
    if wide.get("effect") and wide.get("effect") != narrow.get("effect"):
        return False
    if wide.get("effect") == "NoExecute" and not _lasts(wide, narrow):
        return False
    return exists or (narrow.get("operator") == "Equal" and narrow.get("value") == wide.get("value"))


def _lasts(wide: Json, narrow: Json) -> bool:
    limit, needed = wide.get("tolerationSeconds"), narrow.get("tolerationSeconds")
    return limit is None or (needed is not None and needed <= limit)
