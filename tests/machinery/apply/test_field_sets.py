"""Field sets are sets of paths, whatever the form they are kept in."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.machinery.apply import fieldset
from pilothouse.machinery.apply.elements import InvalidElement
from pilothouse.machinery.apply.fieldset import FieldSet, Path
from pilothouse.machinery.objects import Json

elements = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', "v:1"])
path_sets = st.frozensets(st.lists(elements, min_size=1, max_size=3).map(tuple), max_size=6)
modest = settings(max_examples=80, deadline=None)


def members(fields: FieldSet) -> frozenset[Path]:
    found = list(fieldset.paths(fields))
    assert len(found) == len(set(found))
    return frozenset(found)


@modest
@given(path_sets)
def test_a_set_holds_the_paths_that_it_was_made_of(paths: frozenset[Path]) -> None:
    fields = fieldset.of_paths(paths)
    assert members(fields) == paths
    assert all(fieldset.has(fields, path) for path in paths)
    assert fieldset.decode(fields) == fields


@modest
@given(path_sets, path_sets)
def test_operations_are_those_of_sets_of_paths(a: frozenset[Path], b: frozenset[Path]) -> None:
    left, right = fieldset.of_paths(a), fieldset.of_paths(b)
    assert members(fieldset.union(left, right)) == a | b
    assert members(fieldset.intersection(left, right)) == a & b
    assert members(fieldset.difference(left, right)) == a - b
    below = {path for path in a if any(path[: len(prefix)] == prefix for prefix in b)}
    assert members(fieldset.recursive_difference(left, right)) == a - below


@modest
@given(path_sets, path_sets)
def test_equal_sets_have_one_form(a: frozenset[Path], b: frozenset[Path]) -> None:
    one = fieldset.union(fieldset.of_paths(a), fieldset.of_paths(b))
    other = fieldset.union(fieldset.of_paths(b), fieldset.of_paths(a))
    assert one == other
    assert str(one) == str(other)


@modest
@given(path_sets, path_sets)
def test_operations_leave_their_arguments_alone(a: frozenset[Path], b: frozenset[Path]) -> None:
    left, right = fieldset.of_paths(a), fieldset.of_paths(b)
    before = str(left), str(right)
    for operation in (fieldset.union, fieldset.intersection, fieldset.difference, fieldset.recursive_difference):
        operation(left, right)
    assert (str(left), str(right)) == before


def test_a_node_is_a_member_when_it_is_empty_or_says_so() -> None:
    fields: Json = {"f:spec": {"f:containers": {'k:{"name":"c"}': {".": {}, "f:image": {}}}}}
    assert [fieldset.shown_path(path) for path in fieldset.paths(fields)] == [
        '.spec.containers[name="c"]',
        '.spec.containers[name="c"].image',
    ]


def test_paths_are_shown_as_upstream_shows_them() -> None:
    path = ("f:spec", "f:ports", 'k:{"containerPort":80,"protocol":"TCP"}', 'v:"x"', "v:true", "i:3")
    assert fieldset.shown_path(path) == '.spec.ports[containerPort=80,protocol="TCP"][="x"][=true][3]'


def test_a_set_that_somebody_else_wrote_gets_the_one_form() -> None:
    raw: Json = {"f:b": {}, "f:a": {".": {}}, 'k:{"z": 1, "a": "<"}': {}, "v:2.0": {}, ".": {}}
    decoded = fieldset.decode(raw)
    assert list(decoded) == ["f:a", "f:b", 'k:{"a":"\\u003c","z":1}', "v:2"]
    assert decoded["f:a"] == {}


@pytest.mark.parametrize("raw", [{"x:a": {}}, {"f:a": 1}, {"k:1": {}}, {"k:{": {}}, {"i:x": {}}, [], {"a": {}}])
def test_what_is_no_field_set_is_refused(raw: object) -> None:
    with pytest.raises(InvalidElement):
        fieldset.decode(raw)
