"""What a delete does to an object before it goes: finalizers, grace periods, marks."""

from __future__ import annotations

from datetime import timedelta

import pytest

from pilothouse.apiserver.registry.finalizers_and_grace import (
    FOREGROUND,
    ORPHAN,
    begin_graceful_deletion,
    deletion_finalizers,
    mark_as_deleting,
    should_delete_during_update,
)
from pilothouse.apiserver.registry.options import DeleteOptions, Preconditions
from pilothouse.apiserver.registry.strategy import GarbageCollection, Strategy
from pilothouse.machinery.errors import Conflict
from pilothouse.machinery.names import GroupKind
from pilothouse.machinery.objects import Json
from pilothouse.machinery.times import format_time, parse_time, system_clock

KIND = GroupKind("", "Thing")


class Graceful(Strategy):
    """Things that take 30 seconds to stop, unless they are told otherwise."""

    def grace_period(self, obj: Json, requested: int | None) -> int | None:
        return 30 if requested is None else requested


class Orphaning(Strategy):
    garbage_collection = GarbageCollection.ORPHAN_DEPENDENTS


class Uncollected(Strategy):
    garbage_collection = GarbageCollection.UNSUPPORTED


def thing(**metadata: object) -> Json:
    return {"metadata": {"name": "a", "uid": "u", "resourceVersion": "5", **metadata}}


@pytest.mark.parametrize(
    ("strategy", "finalizers", "options", "expected"),
    [
        (Strategy(), [], DeleteOptions(), []),
        (Strategy(), ["x/y"], DeleteOptions(), ["x/y"]),
        (Strategy(), [], DeleteOptions(propagation_policy="Orphan"), [ORPHAN]),
        (Strategy(), [], DeleteOptions(propagation_policy="Foreground"), [FOREGROUND]),
        (Strategy(), [FOREGROUND], DeleteOptions(propagation_policy="Background"), []),
        (Strategy(), [], DeleteOptions(orphan_dependents=True), [ORPHAN]),
        (Strategy(), [FOREGROUND], DeleteOptions(orphan_dependents=False), []),
        (Strategy(), [ORPHAN], DeleteOptions(), [ORPHAN]),
        (Strategy(), [FOREGROUND], DeleteOptions(), [FOREGROUND]),
        (Strategy(), [ORPHAN, "x/y"], DeleteOptions(propagation_policy="Foreground"), ["x/y", FOREGROUND]),
        (Orphaning(), [], DeleteOptions(), [ORPHAN]),
        (Orphaning(), [], DeleteOptions(propagation_policy="Background"), []),
        (Uncollected(), [], DeleteOptions(propagation_policy="Orphan"), []),
    ],
)
def test_the_options_then_the_finalizers_then_the_kind_decide_what_becomes_of_dependents(
    strategy: Strategy, finalizers: list[str], options: DeleteOptions, expected: list[str]
) -> None:
    assert deletion_finalizers(strategy, thing(finalizers=finalizers), options) == expected


def test_a_kind_without_grace_is_not_marked() -> None:
    obj = thing()
    assert not begin_graceful_deletion(Strategy(), obj, DeleteOptions(), KIND).graceful
    assert "deletionTimestamp" not in obj["metadata"]


def test_a_graceful_delete_marks_the_end_of_the_period_and_a_new_generation() -> None:
    obj = thing(generation=3)
    grace = begin_graceful_deletion(Graceful(), obj, DeleteOptions(), KIND)
    assert (grace.graceful, grace.options.grace_period_seconds) == (True, 30)
    assert obj["metadata"]["deletionGracePeriodSeconds"] == 30
    assert obj["metadata"]["generation"] == 4


def test_a_second_delete_may_shorten_the_period_but_not_lengthen_it() -> None:
    end = system_clock() + timedelta(seconds=30)
    obj = thing(deletionTimestamp=format_time(end), deletionGracePeriodSeconds=30)
    longer = begin_graceful_deletion(Graceful(), obj, DeleteOptions(grace_period_seconds=60), KIND)
    assert longer.pending
    shorter = begin_graceful_deletion(Graceful(), obj, DeleteOptions(grace_period_seconds=10), KIND)
    assert shorter.graceful
    moved = parse_time(obj["metadata"]["deletionTimestamp"])
    assert moved is not None
    assert moved < end
    assert obj["metadata"]["deletionGracePeriodSeconds"] == 10


def test_a_negative_period_counts_as_one_second() -> None:
    obj = thing()
    begin_graceful_deletion(Graceful(), obj, DeleteOptions(grace_period_seconds=-5), KIND)
    assert obj["metadata"]["deletionGracePeriodSeconds"] == 1


@pytest.mark.parametrize("conditions", [Preconditions(uid="other"), Preconditions(resource_version="4")])
def test_preconditions_that_do_not_hold_are_a_conflict(conditions: Preconditions) -> None:
    with pytest.raises(Conflict, match="does not match"):
        begin_graceful_deletion(Strategy(), thing(), DeleteOptions(preconditions=conditions), KIND)


def test_a_mark_is_never_moved_to_later() -> None:
    obj = thing(deletionTimestamp="2001-01-01T00:00:00Z", generation=2)
    mark_as_deleting(obj)
    assert obj["metadata"]["deletionTimestamp"] == "2001-01-01T00:00:00Z"
    assert obj["metadata"]["generation"] == 2
    assert obj["metadata"]["deletionGracePeriodSeconds"] == 0


@pytest.mark.parametrize(
    ("new", "old", "ends"),
    [
        (thing(), thing(), False),
        (thing(), thing(deletionTimestamp="2001-01-01T00:00:00Z"), True),
        (thing(finalizers=["x/y"]), thing(deletionTimestamp="2001-01-01T00:00:00Z"), False),
        (thing(), thing(deletionTimestamp="2001-01-01T00:00:00Z", deletionGracePeriodSeconds=30), False),
        (thing(), thing(deletionTimestamp="2001-01-01T00:00:00Z", deletionGracePeriodSeconds=0), True),
    ],
)
def test_an_update_ends_a_deleted_object_that_nothing_keeps(new: Json, old: Json, ends: bool) -> None:
    assert should_delete_during_update(Strategy(), new, old) is ends
