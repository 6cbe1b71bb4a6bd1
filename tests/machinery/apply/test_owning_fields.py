"""What updates and applies do to objects and to the ownership of their fields."""

from __future__ import annotations

from typing import Any

import pytest
from apply_schemas import SCHEMA, objects
from hypothesis import given, settings

from pilothouse.machinery.apply import fieldset
from pilothouse.machinery.apply.atoms import Atom, ListAtom, MapAtom
from pilothouse.machinery.apply.compare import compare
from pilothouse.machinery.apply.managed import APPLY, UPDATE, Conflicts, ManagerId, VersionedSet, manager_id
from pilothouse.machinery.apply.merge import merge
from pilothouse.machinery.apply.typed import Typed, field_set
from pilothouse.machinery.apply.updater import Updater, reconcile
from pilothouse.machinery.objects import json_equal

V1, V2 = "example.com/v1", "example.com/v2"
ALPHA, BETA = manager_id("alpha", APPLY, V1), manager_id("beta", APPLY, V1)
GAMMA = manager_id("gamma", UPDATE, V1)
modest = settings(max_examples=60, deadline=None)


class RenamingConverter:
    """In v2 the number is called count."""

    def convert(self, typed: Typed, api_version: str) -> Typed | None:
        if api_version == typed.api_version:
            return typed
        if api_version not in (V1, V2):
            return None
        old, new = ("number", "count") if api_version == V2 else ("count", "number")
        assert SCHEMA.map is not None
        fields = dict(SCHEMA.map.fields)
        if api_version == V2:
            fields["count"] = fields.pop("number")
        value = {new if key == old else key: member for key, member in typed.value.items()}
        return Typed(Atom(map=MapAtom(fields)), value, api_version)


UPDATER = Updater(RenamingConverter())


class Thing:
    """An object with its managers."""

    def __init__(self, value: dict[str, Any] | None = None) -> None:
        self.value = value or {}
        self.managers: dict[ManagerId, VersionedSet] = {}

    def apply(self, config: dict[str, Any], manager: ManagerId = ALPHA, *, force: bool = False) -> Thing:
        applied = UPDATER.apply(typed(self.value), typed(config), self.managers, manager, force=force)
        # Upstream makes null of a value from which all is removed; objects always have a name left.
        self.value = applied.value or {}
        self.managers = applied.managers
        return self

    def update(self, value: dict[str, Any], manager: ManagerId = GAMMA) -> Thing:
        self.managers = UPDATER.update(typed(self.value), typed(value), self.managers, manager)
        self.value = value
        return self

    def owned(self, manager: ManagerId) -> fieldset.FieldSet:
        return self.managers[manager].fields if manager in self.managers else {}


def typed(value: dict[str, Any]) -> Typed:
    return Typed(SCHEMA, value, V1)


@modest
@given(objects, objects)
def test_applying_twice_changes_nothing(value: dict[str, Any], config: dict[str, Any]) -> None:
    thing = Thing().update(value).apply(config, force=True)
    before, managers = thing.value, thing.managers
    thing.apply(config)
    assert json_equal(thing.value, before)
    assert thing.managers == managers


@modest
@given(objects, objects)
def test_an_applier_owns_what_it_mentions(value: dict[str, Any], config: dict[str, Any]) -> None:
    thing = Thing().update(value).apply(config, force=True)
    assert thing.owned(ALPHA) == field_set(SCHEMA, config)


@modest
@given(objects, objects)
def test_what_one_applier_stops_mentioning_is_removed(first: dict[str, Any], second: dict[str, Any]) -> None:
    thing = Thing().apply(first).apply(second)
    left = field_set(SCHEMA, {key: value for key, value in thing.value.items() if value is not None})
    gone = fieldset.difference(field_set(SCHEMA, first), field_set(SCHEMA, second))
    kept = set(fieldset.paths(fieldset.intersection(left, gone)))
    # A field stays for the sake of something below it.
    assert all(
        any(len(other) > len(path) and other[: len(path)] == path for other in fieldset.paths(left)) for path in kept
    )


@modest
@given(objects, objects, objects)
def test_what_somebody_else_owns_is_never_removed(
    shared: dict[str, Any], first: dict[str, Any], second: dict[str, Any]
) -> None:
    thing = Thing().apply(shared, BETA).apply(first, force=True)
    beta = thing.owned(BETA)
    thing.apply(second, force=True)
    still = fieldset.intersection(beta, thing.owned(BETA))
    assert fieldset.difference(still, everything(thing.value)) == {}


@modest
@given(objects, objects)
def test_conflicts_are_the_fields_of_others_that_would_change(value: dict[str, Any], config: dict[str, Any]) -> None:
    thing = Thing().update(value)
    change = compare(SCHEMA, value, merge(SCHEMA, value, config) or {})
    expected = fieldset.intersection(thing.owned(GAMMA), fieldset.union(change.modified, change.added))
    try:
        thing.apply(config)
        found = set()
    except Conflicts as conflicts:
        found = {conflict.path for conflict in conflicts.conflicts}
    assert found == set(fieldset.paths(expected))


@modest
@given(objects, objects)
def test_an_update_owns_what_it_changed_and_others_lose_it(value: dict[str, Any], new: dict[str, Any]) -> None:
    thing = Thing().apply(value)
    before = thing.owned(ALPHA)
    change = compare(SCHEMA, thing.value, new)
    thing.update(new)
    changed = fieldset.union(change.added, change.modified)
    assert thing.owned(GAMMA) == changed
    lost = fieldset.union(changed, change.removed)
    assert thing.owned(ALPHA) == fieldset.difference(before, lost)


def everything(value: dict[str, Any]) -> fieldset.FieldSet:
    return compare(SCHEMA, {}, value).added


def test_conflicts_name_each_field_and_its_manager() -> None:
    thing = Thing().apply({"labels": {"a": "1", "b": "1"}}, BETA).update({"labels": {"a": "1", "b": "1"}, "number": 1})
    with pytest.raises(Conflicts) as caught:
        thing.apply({"labels": {"a": "2", "b": "2"}, "number": 2})
    assert str(caught.value) == (
        'Apply failed with 3 conflicts: conflicts with "beta":\n- .labels.a\n- .labels.b\n'
        'conflicts with "gamma" using example.com/v1:\n- .number'
    )
    assert caught.value.causes[0] == {
        "reason": "FieldManagerConflict",
        "message": 'conflict with "beta"',
        "field": ".labels.a",
    }


def test_one_conflict_is_told_in_one_line() -> None:
    thing = Thing().update({"number": 1}, manager_id("zeta", UPDATE, V1, "status"))
    with pytest.raises(Conflicts) as caught:
        thing.apply({"number": 2})
    expected = 'conflict with "zeta" with subresource "status" using example.com/v1: .number'
    assert str(caught.value) == f"Apply failed with 1 conflict: {expected}"


def test_appliers_who_agree_share_a_field_until_both_let_go() -> None:
    thing = Thing().apply({"labels": {"a": "1"}}).apply({"labels": {"a": "1"}}, BETA)
    assert thing.apply({}).value == {"labels": {"a": "1"}}
    assert not thing.apply({}, BETA).value.get("labels")


def test_a_manager_in_another_version_is_compared_in_its_own() -> None:
    thing = Thing().update({"number": 1})
    other = manager_id("other", UPDATE, V2)
    thing.managers[other] = VersionedSet({"f:count": {}, "f:labels": {}}, V2, applied=False)
    with pytest.raises(Conflicts) as caught:
        thing.apply({"number": 2})
    assert "- .count" in str(caught.value)
    thing.apply({"number": 2}, force=True)
    assert thing.owned(other) == {"f:labels": {}}


def test_a_manager_in_a_version_that_is_no_more_is_dropped() -> None:
    thing = Thing({"number": 1})
    gone = manager_id("gone", UPDATE, "example.com/v0")
    thing.managers[gone] = VersionedSet({"f:number": {}}, "example.com/v0", applied=False)
    assert gone not in thing.apply({"number": 2}).managers


def test_fields_that_are_reset_are_owned_by_nobody() -> None:
    updater = Updater(RenamingConverter(), fieldset.of_fields("nested"))
    managers = updater.update(typed({}), typed({"nested": {"number": 1}, "number": 2}), {}, GAMMA)
    assert managers[GAMMA].fields == {"f:number": {}}


def test_whoever_owned_something_in_a_field_that_became_atomic_owns_it_whole() -> None:
    atomic = Atom(
        map=MapAtom({"labels": Atom(map=MapAtom(element=DEEP, atomic=True)), "items": Atom(list=ListAtom(DEEP))})
    )
    fields = {"f:labels": {"f:a": {}}, "f:items": {'k:{"name":"x"}': {".": {}, "f:port": {}}}, "f:other": {"f:x": {}}}
    assert reconcile(atomic, fields) == {"f:labels": {}, "f:items": {}, "f:other": {"f:x": {}}}
    assert reconcile(SCHEMA, fields) is fields


DEEP = Atom(map=MapAtom(element=SCHEMA))
