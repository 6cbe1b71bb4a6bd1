"""Comparing, merging and removing along a schema."""

from __future__ import annotations

from typing import Any

from apply_schemas import SCHEMA, objects
from hypothesis import given, settings

from pilothouse.machinery.apply import fieldset
from pilothouse.machinery.apply.atoms import Atom, ListAtom, MapAtom, Scalar
from pilothouse.machinery.apply.compare import compare
from pilothouse.machinery.apply.merge import merge
from pilothouse.machinery.apply.typed import field_set, remove, with_named_fields
from pilothouse.machinery.objects import json_equal

modest = settings(max_examples=80, deadline=None)


@modest
@given(objects)
def test_a_value_does_not_differ_from_itself(value: dict[str, Any]) -> None:
    found = compare(SCHEMA, value, dict(value))
    assert (found.added, found.modified, found.removed) == ({}, {}, {})


@modest
@given(objects, objects)
def test_a_comparison_is_the_other_way_round_backwards(old: dict[str, Any], new: dict[str, Any]) -> None:
    there, back = compare(SCHEMA, old, new), compare(SCHEMA, new, old)
    assert (there.added, there.modified, there.removed) == (back.removed, back.modified, back.added)


@modest
@given(objects, objects)
def test_no_field_is_both_added_and_removed(old: dict[str, Any], new: dict[str, Any]) -> None:
    found = compare(SCHEMA, old, new)
    sets = [set(fieldset.paths(part)) for part in (found.added, found.modified, found.removed)]
    assert sum(map(len, sets)) == len(set().union(*sets))


@modest
@given(objects, objects)
def test_merging_twice_is_merging_once(live: dict[str, Any], config: dict[str, Any]) -> None:
    merged = merge(SCHEMA, live, config) or {}
    assert json_equal(merge(SCHEMA, merged, config) or {}, merged)


@modest
@given(objects, objects)
def test_merging_removes_nothing_and_puts_in_all_of_the_configuration(
    live: dict[str, Any], config: dict[str, Any]
) -> None:
    merged = merge(SCHEMA, live, config) or {}
    owned, there = field_set(SCHEMA, config), field_set(SCHEMA, merged)
    assert fieldset.difference(owned, fieldset.union(there, with_named_fields(SCHEMA, there))) == {}
    # An owned field differs only where a value that has a form of its own took the place of another.
    typed = {key: value for key, value in config.items() if key != "any"}
    assert fieldset.intersection(field_set(SCHEMA, typed), compare(SCHEMA, merged, config).modified) == {}


@modest
@given(objects)
def test_what_is_removed_is_gone_and_nothing_else_is(value: dict[str, Any]) -> None:
    fields = field_set(SCHEMA, value)
    first = next(fieldset.paths(fields), None)
    if first is None:
        return
    left = remove(SCHEMA, value, fieldset.of_paths([first])) or {}
    gone = set(fieldset.paths(fields)) - set(fieldset.paths(field_set(SCHEMA, left)))
    assert first in gone
    assert all(path[: len(first)] == first or first[: len(path)] == path for path in gone)


def test_items_come_in_the_order_of_the_configuration_and_others_keep_their_place() -> None:
    atom = Atom(list=ListAtom(Atom(Scalar.STRING), associative=True))
    assert merge(atom, ["a", "b", "c", "d"], ["d", "x", "b"]) == ["a", "c", "d", "x", "b"]
    assert merge(atom, ["a", "b"], ["c"]) == ["a", "b", "c"]
    assert merge(atom, ["a", "b", "c"], ["c", "a"]) == ["b", "c", "a"]


def test_items_that_cannot_be_told_apart_have_one_owner() -> None:
    atom = SCHEMA
    doubled = {"items": [{"name": "x", "port": 1}, {"name": "x", "port": 2}]}
    single = {"items": [{"name": "x", "port": 1}]}
    item = 'k:{"name":"x"}'
    assert compare(atom, {}, doubled).added == {"f:items": {".": {}, item: {}}}
    assert compare(atom, doubled, single).removed == {"f:items": {item: {}}}
    assert compare(atom, single, doubled).added == {"f:items": {item: {}}}
    changed = {"items": [{"name": "x", "port": 1}, {"name": "x", "port": 3}]}
    assert compare(atom, doubled, changed).modified == {"f:items": {item: {}}}


def test_true_is_not_one_where_no_schema_says_which_it_is() -> None:
    assert compare(SCHEMA, {"any": {"x": True}}, {"any": {"x": 1}}).modified == {"f:any": {"f:x": {}}}
    assert compare(SCHEMA, {"any": {"x": 1}}, {"any": {"x": 1.0}}).modified == {}


def test_a_value_of_another_form_is_a_change_of_its_field_and_of_what_was_in_it() -> None:
    found = compare(SCHEMA, {"any": {"x": {"y": 1}}}, {"any": {"x": 5}})
    assert found.modified == {"f:any": {"f:x": {}}}
    assert found.removed == {"f:any": {"f:x": {"f:y": {}}}}


def test_null_differs_from_nothing_in_it() -> None:
    assert compare(SCHEMA, {"labels": None}, {"labels": {}}).modified == {"f:labels": {}}
    assert compare(SCHEMA, {"labels": None}, {"labels": {"a": "b"}}).added == {"f:labels": {"f:a": {}}}


def test_an_atomic_value_has_one_owner() -> None:
    value = {"selector": {"a": "b"}, "args": ["x"]}
    assert field_set(SCHEMA, value) == {"f:args": {}, "f:selector": {}}
    assert merge(SCHEMA, value, {"selector": {"c": "d"}, "args": []}) == {"selector": {"c": "d"}, "args": []}


def test_an_empty_list_of_items_mentions_nothing_and_an_empty_map_mentions_itself() -> None:
    assert field_set(SCHEMA, {"items": [], "labels": {}}) == {"f:labels": {}}


def test_keys_with_defaults_name_an_item_that_leaves_them_out() -> None:
    port = Atom(map=MapAtom({"port": Atom(Scalar.NUMERIC), "protocol": Atom(Scalar.STRING)}))
    ports = ListAtom(port, associative=True, keys=("port", "protocol"), defaults={"protocol": "TCP"})
    assert field_set(Atom(list=ports), [{"port": 80}]) == {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}}}
