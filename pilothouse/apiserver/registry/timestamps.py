"""Times in managedFields that changed alone: they are set back, so that a write that changes nothing else is none."""

from __future__ import annotations

from typing import Any

from pilothouse.machinery.objects import Json, metadata


def revert_lone_timestamps(obj: Json, old: Json) -> None:
    new_entries, old_entries = metadata(obj).get("managedFields"), metadata(old).get("managedFields")
    if not new_entries or new_entries == old_entries or _without_times(new_entries) != _without_times(old_entries):
        return
    if _without_entries(obj) == _without_entries(old):
        metadata(obj)["managedFields"] = old_entries


def _without_times(entries: Any) -> list[Json]:
    return [{key: value for key, value in entry.items() if key != "time"} for entry in entries or ()]


def _without_entries(obj: Json) -> Json:
    meta = {key: value for key, value in metadata(obj).items() if key != "managedFields"}
    return {**obj, "metadata": meta}
