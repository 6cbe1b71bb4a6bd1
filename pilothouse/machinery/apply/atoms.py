"""Atoms: how the values of a type merge. An atom is a scalar, a list or a map, or may be any of them.

    scalar, atomic list, atomic map    one owner for the whole value
    list with keys, set                one owner an item
    struct, granular map               one owner a field

An atom whose form shows only in the value (`DEDUCED`) has all three. Atoms may contain themselves; they are built
once a type and know nothing of where the type came from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from enum import Enum
from typing import Any

from pilothouse.machinery.apply.elements import encode_key, key_element, value_element
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json


class Scalar(Enum):
    NUMERIC = "numeric"
    STRING = "string"
    BOOLEAN = "boolean"
    UNTYPED = "untyped"


class Unkeyed(ValueError):
    """An item of a list that cannot be told from the others, or a field without a name in the schema: nobody can own
    it. The message is upstream's."""


@dataclass(slots=True, eq=False)
class ListAtom:
    """`associative` lists have `keys`, or are sets when they have none."""

    element: Atom = field(repr=False)
    associative: bool = False
    keys: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """The value that a key field counts as having where an item leaves it out."""
    element_of: Callable[[Any], str] = field(init=False, repr=False)
    """The path element of an item. Raises Unkeyed."""

    def __post_init__(self) -> None:
        self.element_of = _key_reader(self) if self.keys else _set_element


@dataclass(slots=True, eq=False)
class MapAtom:
    """Structs have `fields`, maps have an `element`, structs that keep unknown fields have both."""

    fields: Mapping[str, Atom] = field(default_factory=dict, repr=False)
    element: Atom | None = field(default=None, repr=False)
    atomic: bool = False

    def child(self, name: str) -> Atom:
        """Raises Unkeyed."""
        found = self.fields.get(name, self.element)
        if found is None:
            raise Unkeyed(f".{name}: field not declared in schema")
        return found


@dataclass(slots=True, eq=False)
class Atom:
    scalar: Scalar | None = None
    list: ListAtom | None = None
    map: MapAtom | None = None
    everything: Callable[[Any], Json] | None = field(default=None, repr=False)
    """The compiled walker of `whole.everything_in`, once there is one."""
    exact: bool | None = field(default=None, repr=False)
    """The answer of `whole.is_exact`, once there is one."""

    def for_value(self, value: Any) -> Atom:
        """The one of several forms that the value has; all of them where it has none or is null."""
        if self.scalar is None and (self.map is None or self.list is None):
            return self
        if self.map is None and self.list is None:
            return self
        if isinstance(value, dict):
            return Atom(map=self.map) if self.map else self
        if isinstance(value, list):
            return Atom(list=self.list) if self.list else self
        return Atom(scalar=self.scalar) if self.scalar and value is not None else self

    @property
    def is_leaf(self) -> bool:
        """Whether every value has one owner."""
        if self.map is not None and not self.map.atomic:
            return False
        return self.list is None or not self.list.associative


def _key_reader(atom: ListAtom) -> Callable[[Any], str]:
    if len(atom.keys) == 1:
        return _single_key_reader(atom)

    def read(item: Any) -> str:
        _check_item(item)
        found = {name: item[name] if name in item else atom.defaults.get(name) for name in atom.keys}
        present = {name: value for name, value in found.items() if value is not None or name in item}
        if not present:
            raise _omits_keys(atom)
        return key_element(present)

    return read


def _single_key_reader(atom: ListAtom) -> Callable[[Any], str]:
    """Return a function that does what `key_element` does, prepared for lists with a single key."""
    name, default = atom.keys[0], atom.defaults.get(atom.keys[0])
    prefix = "k:{" + encode_key(name) + ":"

    def read(item: Any) -> str:
        _check_item(item)
        if name not in item and default is None:
            raise _omits_keys(atom)
        return prefix + encode_key(item.get(name, default)) + "}"

    return read


def _check_item(item: Any) -> None:
    if item is None:
        raise Unkeyed("associative list with keys may not have a null element")
    if not isinstance(item, dict):
        raise Unkeyed("associative list with keys may not have non-map elements")


def _omits_keys(atom: ListAtom) -> Unkeyed:
    names = f"[{' '.join(map(quote, atom.keys))}]"
    why = "(and doesn't have default values for any key fields)"
    return Unkeyed(f"associative list with keys has an element that omits all key fields {names} {why}")


def _set_element(item: Any) -> str:
    if isinstance(item, dict):
        raise Unkeyed("associative list without keys has an element that's a map type")
    if isinstance(item, list):
        raise Unkeyed("not supported: associative list with lists as elements")
    if item is None:
        raise Unkeyed("associative list without keys has an element that's an explicit null")
    return value_element(item)


def _deduced() -> Atom:
    atom = Atom(Scalar.UNTYPED)
    atom.list, atom.map = ListAtom(UNTYPED_ATOMIC), MapAtom(element=atom)
    return atom


def _untyped_atomic() -> Atom:
    atom = Atom(Scalar.UNTYPED)
    atom.list, atom.map = ListAtom(atom), MapAtom(element=atom, atomic=True)
    return atom


UNTYPED_ATOMIC = _untyped_atomic()
DEDUCED = _deduced()
"""Of values that no schema describes: granular maps, all else atomic."""
INT_OR_STRING = Atom(Scalar.UNTYPED, ListAtom(UNTYPED_ATOMIC), MapAtom(element=DEDUCED))
"""Upstream's schema names no type for these, so that a configuration may put anything in their place."""
