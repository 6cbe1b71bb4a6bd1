"""Our dataclass decorator does what the standard one does, without compiling what nobody calls."""

from __future__ import annotations

import copy
import dataclasses
import operator
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.machinery.dataclass import dataclass

_FIELDS: dict[str, Callable[[], Any]] = {
    "required": lambda: field(),
    "with a default": lambda: field(default=7),
    "with a factory": lambda: field(default_factory=lambda: [1]),
    "by keyword": lambda: field(kw_only=True, default="k"),
    "not compared": lambda: field(default=3, compare=False),
    "not hashed": lambda: field(default_factory=dict, hash=False),
    "not shown": lambda: field(default=4, repr=False),
    "no parameter": lambda: field(init=False, default=5),
}


@st.composite
def _classes(draw: st.DrawFn) -> tuple[list[str], dict[str, bool]]:
    optional = st.sampled_from(sorted(_FIELDS.keys() - {"required"}))
    kinds = ["required"] * draw(st.integers(0, 3)) + draw(st.lists(optional, max_size=4))
    flags = ("frozen", "eq", "slots", "kw_only", "unsafe_hash", "order")
    options = {flag: draw(st.booleans()) for flag in flags}
    for flag in ("unsafe_hash", "order"):
        options[flag] &= options["eq"]
    return kinds, options


def _both(kinds: list[str], options: dict[str, bool]) -> list[Any]:
    def plain() -> Any:
        own = {f"f{number}": _FIELDS[kind]() for number, kind in enumerate(kinds)}
        given = {name: value for name, value in own.items() if value != field()}
        return type("Made", (), {"__annotations__": dict.fromkeys(own, "object"), "__qualname__": "Made", **given})

    return [decorate(**options)(plain()) for decorate in (dataclasses.dataclass, dataclass)]


def _outcome(act: Callable[[], object]) -> object:
    try:
        return act()
    except Exception as error:
        return type(error), str(error)


def _behaviour(cls: Any, options: dict[str, bool], values: list[int]) -> dict[str, object]:
    """What instances of the class do: two that are given the same values, and one that is not."""
    given = dict(zip([f.name for f in dataclasses.fields(cls) if f.init], values, strict=False))
    tried = [_outcome(partial(cls, **v)) for v in (given, given, given | {"f0": 9})]
    made = [each for each in tried if isinstance(each, cls)]
    pairs = [(left, right) for left in made for right in made]
    return {
        "matched by": cls.__match_args__,
        "made": len(made),
        "shown": [repr(each) for each in made],
        "equal": options["eq"] and [left == right for left, right in pairs],
        "ordered": options["order"] and [_outcome(partial(operator.lt, a, b)) for a, b in pairs],
        "hashed": options["eq"] and [_outcome(partial(hash, each)) for each in made],
        "changed": [_outcome(partial(setattr, each, "f0", 1)) for each in made if hasattr(each, "f0")],
    }


@settings(max_examples=60, deadline=None)
@given(_classes(), st.lists(st.integers(0, 2), max_size=7))
def test_instances_do_what_those_of_the_standard_decorator_do(
    what: tuple[list[str], dict[str, bool]], values: list[int]
) -> None:
    standard, ours = (_behaviour(cls, what[1], values) for cls in _both(*what))
    assert ours == standard


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    set_x: int = 0
    tags: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Named(Point):
    name: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name.upper())


class Subclass(Named):
    pass


def test_copies_pickles_and_replacements_are_equal_instances() -> None:
    named = Named(1, tags=["a"], name="n")
    assert copy.deepcopy(named) == pickle.loads(pickle.dumps(named)) == dataclasses.replace(named) == named
    assert dataclasses.asdict(named) == {"x": 1, "set_x": 0, "tags": ["a"], "name": "N"}


def test_each_instance_gets_what_the_factory_makes_for_it() -> None:
    assert Point(1).tags is not Point(1).tags


def test_a_field_of_a_frozen_instance_is_neither_set_nor_deleted() -> None:
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
        Point(1).x = 2  # type: ignore[misc]  # which is what is tested
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'name'"):
        del Subclass(1).name


def test_a_subclass_that_is_no_dataclass_is_made_and_compared_by_the_methods_of_its_base() -> None:
    assert Subclass(1, name="n") == Subclass(1, name="n") != Named(1, name="n")


def test_methods_that_the_class_defines_stay() -> None:
    @dataclass(frozen=True)
    class Own:
        value: int

        def __eq__(self, other: object) -> bool:
            return True

        def __repr__(self) -> str:
            return "own"

    assert Own(1) == Own(2)
    assert (repr(Own(1)), hash(Own(1))) == ("own", hash((1,)))


def test_nothing_is_compiled_for_a_class_that_is_only_defined() -> None:
    @dataclass(frozen=True, slots=True)
    class Unused:
        value: int

    assert not any(callable(vars(Unused)[name]) for name in ("__init__", "__eq__", "__hash__"))
    assert Unused(1) == Unused(1)
    assert callable(vars(Unused)["__init__"])
    assert not callable(vars(Unused)["__hash__"])
