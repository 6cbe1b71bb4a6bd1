"""Owners, finalizers, deletion and conditions: the fields that objects of every kind share."""

from __future__ import annotations

from datetime import UTC, datetime

from pilothouse.kinds import conditions, deletion, owners

DELETED = {"metadata": {"deletionTimestamp": "2024-02-01T12:00:30Z", "deletionGracePeriodSeconds": 30}}


def test_deletion_was_requested_a_grace_period_before_its_timestamp() -> None:
    assert deletion.is_deleting(DELETED)
    assert not deletion.is_deleting({})
    assert deletion.deletion_requested(DELETED) == datetime(2024, 2, 1, 12, tzinfo=UTC)
    assert deletion.deletion_requested({"metadata": {}}) is None


def test_finalizer_is_added_once_and_copies_leave_the_object_alone() -> None:
    obj = {"metadata": {"name": "a"}}
    deletion.add_finalizer(obj, "x/y")
    deletion.add_finalizer(obj, "x/y")
    assert deletion.finalizers_of(obj) == ["x/y"]
    assert deletion.finalizers_of(deletion.without_finalizer(obj, "x/y")) == []
    assert deletion.has_finalizer(obj, "x/y")


def test_object_that_is_being_deleted_needs_no_finalizer() -> None:
    assert deletion.needs_finalizer({"metadata": {}}, "x/y")
    assert not deletion.needs_finalizer(DELETED, "x/y")
    assert deletion.is_deletion_candidate(deletion.with_finalizer(DELETED, "x/y"), "x/y")


def test_controller_is_the_owner_with_controller_true() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web", "uid": "u"}}
    orphan = {"metadata": {"ownerReferences": [owners.owner_ref(owner)]}}
    owned = {"metadata": {"ownerReferences": [owners.controller_ref(owner)]}}
    assert owners.controller_of(orphan) is None
    assert owners.is_owned_by(orphan, owner)
    assert owners.is_controlled_by(owned, owner)
    assert not owners.is_controlled_by(orphan, owner)


def test_transition_time_moves_only_with_the_status() -> None:
    old = {"type": "Ready", "status": "True", "lastTransitionTime": "2024-02-01T12:00:00Z"}
    obj = {"status": {"conditions": [dict(old)]}}
    conditions.set_condition(obj, conditions.Condition("Ready", "True", "Changed", ""))
    assert (conditions.find_condition(obj, "Ready") or {})["lastTransitionTime"] == old["lastTransitionTime"]
    conditions.set_condition(obj, conditions.Condition("Ready", "False", "Changed", ""))
    assert (conditions.find_condition(obj, "Ready") or {})["lastTransitionTime"] != old["lastTransitionTime"]
    assert not conditions.is_true(obj, "Ready")


def test_new_condition_takes_the_place_of_the_old_one() -> None:
    first, second, new = (
        {"type": "A", "status": "True"},
        {"type": "B", "status": "True"},
        {"type": "A", "status": "False"},
    )
    assert conditions.with_condition([first, second], new) == [new, second]
    assert conditions.with_condition([second], new) == [second, new]
    assert conditions.without_condition([first, second], "A") == [second]
