"""At most ten managers by updates: when there are more, the oldest of each version become one, `ancient-changes`."""

from __future__ import annotations

from pilothouse.machinery.apply.fieldset import union
from pilothouse.machinery.apply.managed import UPDATE, Managed, ManagerId, manager_id

MAX_UPDATE_MANAGERS = 10
ANCIENT_CHANGES = "ancient-changes"


def cap_managers(managed: Managed, limit: int = MAX_UPDATE_MANAGERS) -> Managed:
    updaters = [manager for manager, versioned in managed.sets.items() if not versioned.applied]
    excess = len(updaters) - limit
    if excess <= 0:
        return managed
    updaters.sort(key=lambda manager: (managed.times.get(manager, ""), manager.encoded))
    out = Managed(dict(managed.sets), dict(managed.times))
    oldest: dict[str, ManagerId] = {}
    for manager in updaters:
        version = managed.sets[manager].api_version
        if excess and version in oldest:
            _put_into_bucket(out, oldest[version], manager)
            excess -= 1
        oldest.setdefault(version, manager)
    return out


def _put_into_bucket(managed: Managed, first: ManagerId, manager: ManagerId) -> None:
    """The bucket begins with the oldest manager, and has the time of the youngest in it."""
    merged = managed.sets.pop(manager)
    bucket = manager_id(ANCIENT_CHANGES, UPDATE, merged.api_version)
    if bucket not in managed.sets:
        managed.sets[bucket] = managed.sets.pop(first)
    managed.sets[bucket] = merged.with_fields(union(merged.fields, managed.sets[bucket].fields))
    if manager in managed.times:
        managed.times[bucket] = managed.times[manager]
    else:
        managed.times.pop(bucket, None)
