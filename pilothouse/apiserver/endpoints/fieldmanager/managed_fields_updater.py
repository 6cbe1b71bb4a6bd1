"""When managers last changed something: a write that changes nothing leaves no trace.

An update is made under a name of its own, so that what it took shows; then it becomes part of its manager's entry.
"""

from __future__ import annotations

from pilothouse.machinery.apply.fieldset import union
from pilothouse.machinery.apply.managed import Managed, ManagerId, VersionedSet
from pilothouse.machinery.times import now

CURRENT_OPERATION = ManagerId("current-operation", "", "")


def after_update(managed: Managed, sets: dict[ManagerId, VersionedSet], manager: ManagerId) -> Managed:
    taken = sets.pop(CURRENT_OPERATION, None)
    if taken is None:
        return Managed(sets, managed.times)
    previous = sets.get(manager)
    sets[manager] = taken if previous is None else taken.with_fields(union(taken.fields, previous.fields))
    return Managed(sets, managed.times | {manager: now()})


def after_apply(managed: Managed, sets: dict[ManagerId, VersionedSet], manager: ManagerId, *, changed: bool) -> Managed:
    return Managed(sets, managed.times | {manager: now()} if changed else managed.times)
