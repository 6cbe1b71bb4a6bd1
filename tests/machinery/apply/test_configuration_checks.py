"""What does not fit its type is refused in upstream's words."""

from __future__ import annotations

from typing import Any

import pytest
from apply_schemas import SCHEMA

from pilothouse.machinery.apply.atoms import Atom, ListAtom, MapAtom, Scalar, atom_of
from pilothouse.machinery.apply.validate import TypedError, check
from pilothouse.machinery.schema import types

UNKEYED = 'associative list with keys has an element that omits all key fields ["name"]'


def refusal(value: Any, atom: Atom = SCHEMA) -> str:
    with pytest.raises(TypedError) as caught:
        check(atom, value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"unknown": {"x": "y"}}, ".unknown: field not declared in schema"),
        ({"number": "1"}, ".number: expected numeric (int or float), got string"),
        ({"number": {}}, ".number: expected numeric (int or float), got map[string]interface {}"),
        ({"labels": {"a": 1}}, ".labels.a: expected string, got &value.valueUnstructured{Value:1}"),
        (
            {"labels": {"a": {"b": [1000000, None]}}},
            ".labels.a: expected string, got &value.valueUnstructured{Value:map[string]interface {}"
            '{"b":[]interface {}{1e+06, interface {}(nil)}}}',
        ),
        ({"labels": ["x"]}, ".labels: expected map, got &{[x]}"),
        ({"args": "x"}, ".args: expected list, got &{x}"),
        ({"args": [True]}, ".args[0]: expected string, got &value.valueUnstructured{Value:true}"),
        (
            {"finalizers": [None]},
            ".finalizers: element 0: associative list without keys has an element that's an explicit null",
        ),
        (
            {"finalizers": [{}]},
            ".finalizers: element 0: associative list without keys has an element that's a map type",
        ),
        ({"finalizers": [[]]}, ".finalizers: element 0: not supported: associative list with lists as elements"),
        ({"finalizers": ["a", "a"]}, '.finalizers: duplicate entries for key [="a"]'),
        ({"items": [None]}, ".items: element 0: associative list with keys may not have a null element"),
        ({"items": ["x"]}, ".items: element 0: associative list with keys may not have non-map elements"),
        ({"items": [{}]}, f".items: element 0: {UNKEYED} (and doesn't have default values for any key fields)"),
        ({"items": [{"name": "a"}, {"name": "a"}]}, '.items: duplicate entries for key [name="a"]'),
        ({"items": [{"name": "a", "port": "x"}]}, '.items[name="a"].port: expected numeric (int or float), got string'),
    ],
)
def test_a_value_that_does_not_fit_is_refused(value: Any, message: str) -> None:
    assert refusal(value) == message


def test_numbers_in_keys_are_shown_as_the_floats_that_go_reads() -> None:
    assert ".items[name=9.223372036854776e+18].port: " in refusal({"items": [{"name": 2**63, "port": "x"}]})


def test_several_problems_are_all_told() -> None:
    assert refusal({"number": "1", "args": 2}) == (
        "errors:\n  .number: expected numeric (int or float), got string\n  .args: expected list, got &{2}"
    )


def test_scalars_of_the_other_types() -> None:
    atom = Atom(map=MapAtom({"flag": Atom(Scalar.BOOLEAN), "any": Atom(Scalar.UNTYPED)}))
    assert refusal({"flag": 1}, atom) == ".flag: expected boolean, got &{1}"
    assert refusal({"any": [1]}, atom) == ".any: expected any scalar, got &{[1]}"


def test_null_fits_everything_and_duplicates_may_be_allowed() -> None:
    check(SCHEMA, {"number": None, "labels": None, "items": None, "args": None, "any": None})
    check(SCHEMA, {"finalizers": ["a", "a"]}, allow_duplicates=True)


def test_the_keys_of_built_in_lists_have_the_defaults_of_their_types() -> None:
    spec = types.definition("io.k8s.api.core.v1.PodSpec")
    container = types.definition("io.k8s.api.core.v1.Container")
    assert spec is not None
    assert container is not None
    assert list_of(atom_of(container), "ports").defaults == {"containerPort": 0, "protocol": "TCP"}
    assert list_of(atom_of(spec), "imagePullSecrets").defaults == {"name": ""}
    assert list_of(atom_of(spec), "containers").element_of({}) == 'k:{"name":""}'


def list_of(atom: Atom, field: str) -> ListAtom:
    assert atom.map is not None
    found = atom.map.fields[field].list
    assert found is not None
    return found
