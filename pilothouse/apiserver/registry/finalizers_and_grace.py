"""The effect of a delete on an object: grace periods, finalizers, deletion marks. Pure functions on one object.

no finalizers, no grace             → removed at once
finalizers (own, orphan, foreground)→ marked with a deletionTimestamp; removed with the last finalizer
grace period (pods)                 → marked; removed by a second delete with grace 0
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from pilothouse.apiserver.registry.options import DeleteOptions, Preconditions
from pilothouse.apiserver.registry.strategy import GarbageCollection, Strategy
from pilothouse.kinds.deletion import is_deleting
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.durations import seconds
from pilothouse.machinery.errors import Conflict
from pilothouse.machinery.names import GroupKind, GroupResource
from pilothouse.machinery.objects import Json, metadata, name_of, resource_version_of, uid_of
from pilothouse.machinery.times import format_time, parse_time, system_clock

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"


@dataclass(frozen=True, slots=True)
class Grace:
    """The result of `begin_graceful_deletion`. `pending`: an earlier delete is in progress and this delete changes
    nothing."""

    options: DeleteOptions
    graceful: bool = False
    pending: bool = False


def check_preconditions(obj: Json, conditions: Preconditions, kind: GroupKind) -> None:
    """Raises Conflict if the object's uid or version is not the required one."""
    if conditions.uid is not None and conditions.uid != uid_of(obj):
        reason = (
            f"the UID in the precondition ({conditions.uid}) does not match the UID in record ({uid_of(obj)}). "
            "The object might have been deleted and then recreated"
        )
        raise Conflict.of(GroupResource(kind.group, kind.kind), name_of(obj), reason)
    wanted, found = conditions.resource_version, resource_version_of(obj)
    if wanted is not None and wanted != found:
        reason = (
            f"the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record ({found})"
            ". The object might have been modified"
        )
        raise Conflict.of(GroupResource(kind.group, kind.kind), name_of(obj), reason)


def begin_graceful_deletion(strategy: Strategy, obj: Json, options: DeleteOptions, kind: GroupKind) -> Grace:
    """Check preconditions and, if the strategy has grace periods, mark the object: upstream's BeforeDelete."""
    check_preconditions(obj, options.preconditions, kind)
    meta = metadata(obj)
    if (options.grace_period_seconds or 0) < 0:
        options = replace(options, grace_period_seconds=1)
    period = strategy.grace_period(obj, options.grace_period_seconds)
    if meta.get("deletionTimestamp"):
        return _continue_deletion(meta, options) if period is not None else Grace(options)
    if period is None:
        return Grace(options)
    options = replace(options, grace_period_seconds=period)
    meta["deletionTimestamp"] = format_time(system_clock() + seconds(period))
    meta["deletionGracePeriodSeconds"] = period
    _bump_generation(meta)
    return Grace(options, graceful=True)


def _continue_deletion(meta: Json, options: DeleteOptions) -> Grace:
    """Return the grace of an object that is already being deleted: its grace period can only become shorter."""
    current = meta.get("deletionGracePeriodSeconds")
    if not current:
        return Grace(options)
    period = options.grace_period_seconds
    if period is None:
        return Grace(replace(options, grace_period_seconds=current), pending=True)
    if period >= current:
        return Grace(options, pending=True)
    shortened = _deletion_time(meta) - seconds(current) + seconds(period)
    if shortened < system_clock():
        # The period has passed: use the shortest graceful period, unless 0 was requested.
        shortened, period = system_clock(), 1 if period else 0
    meta["deletionTimestamp"] = format_time(shortened)
    meta["deletionGracePeriodSeconds"] = period
    return Grace(replace(options, grace_period_seconds=period), graceful=True)


def mark_as_deleting(obj: Json) -> None:
    """Set deletionTimestamp, never later than before, and a grace period of 0."""
    meta = metadata(obj)
    if not meta.get("deletionTimestamp"):
        _bump_generation(meta)
    if not meta.get("deletionTimestamp") or _deletion_time(meta) > system_clock():
        meta["deletionTimestamp"] = format_time(system_clock())
    meta["deletionGracePeriodSeconds"] = 0


def _deletion_time(meta: Json) -> datetime:
    moment = parse_time(meta["deletionTimestamp"])
    assert moment is not None, "a deletionTimestamp is never Go's zero time"
    return moment


def _bump_generation(meta: Json) -> None:
    if meta.get("generation"):
        meta["generation"] += 1


def deletion_finalizers(strategy: Strategy, obj: Json, options: DeleteOptions) -> list[str]:
    """Return the finalizers that make the garbage collector follow the propagation policy."""
    current: list[str] = metadata(obj).get("finalizers") or []
    wanted = [f for f in current if f not in (ORPHAN, FOREGROUND)]
    if _should_orphan(strategy, current, options):
        wanted.append(ORPHAN)
    if _should_delete_in_foreground(strategy, current, options):
        wanted.append(FOREGROUND)
    return current if set(wanted) == set(current) else wanted


def _should_orphan(strategy: Strategy, finalizers: list[str], options: DeleteOptions) -> bool:
    if strategy.garbage_collection is GarbageCollection.UNSUPPORTED:
        return False
    if options.orphan_dependents is not None:
        return options.orphan_dependents
    if options.propagation_policy is not None:
        return options.propagation_policy == "Orphan"
    decided = next((f for f in finalizers if f in (ORPHAN, FOREGROUND)), None)
    if decided:
        return decided == ORPHAN
    return strategy.garbage_collection is GarbageCollection.ORPHAN_DEPENDENTS


def _should_delete_in_foreground(strategy: Strategy, finalizers: list[str], options: DeleteOptions) -> bool:
    if strategy.garbage_collection is GarbageCollection.UNSUPPORTED or options.orphan_dependents is not None:
        return False
    if options.propagation_policy is not None:
        return options.propagation_policy == "Foreground"
    return next((f for f in finalizers if f in (ORPHAN, FOREGROUND)), None) == FOREGROUND


def should_delete_during_update(strategy: Strategy, obj: Json, old: Json) -> bool:
    """Return whether the update removed the last finalizer of a deleted object."""
    if metadata(obj).get("finalizers") or not is_deleting(old):
        return False
    if metadata(old).get("deletionGracePeriodSeconds"):
        return False
    return strategy.may_delete_during_update(obj, old)
