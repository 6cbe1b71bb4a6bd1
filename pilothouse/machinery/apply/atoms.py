"""Atoms: merge behaviour of types. An atom is a scalar, a list, a map, or any of them.

    scalar, atomic list, atomic map    one owner for the whole value
    list with keys, set                one owner per item
    struct, granular map               one owner per field

An atom whose form depends on the value (`DEDUCED`) has all three forms. Atoms may be recursive, and are built once per
type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from enum import Enum
from typing import Any
from weakref import WeakKeyDictionary

from pilothouse.machinery.apply.elements import encode_key, key_element, value_element
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.generated import declared_default
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json
from pilothouse.machinery.schema.nodes import Field, NodeKind, TypeNode
from pilothouse.machinery.schema.nodes import Scalar as NodeScalar


class Scalar(Enum):
    NUMERIC = "numeric"
    STRING = "string"
    BOOLEAN = "boolean"
    UNTYPED = "untyped"


class Unkeyed(ValueError):
    """A list item without identity, or a field missing in the schema: ownership is impossible. The message is
    upstream's."""


@dataclass(slots=True, eq=False)
class ListAtom:
    """List. Associative lists have `keys`; without keys they are sets."""

    element: Atom = field(repr=False)
    associative: bool = False
    keys: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Key field → default for items without the field."""
    element_of: Callable[[Any], str] = field(init=False, repr=False)
    """Return the path element of an item. Raises Unkeyed."""

    def __post_init__(self) -> None:
        self.element_of = _key_reader(self) if self.keys else _set_element


@dataclass(slots=True, eq=False)
class MapAtom:
    """Map. Structs have `fields`, maps an `element`, structs that preserve unknown fields both."""

    fields: Mapping[str, Atom] = field(default_factory=dict, repr=False)
    element: Atom | None = field(default=None, repr=False)
    atomic: bool = False

    def child(self, name: str) -> Atom:
        """Return the atom of a member. Raises Unkeyed."""
        atom = self.fields.get(name, self.element)
        if atom is None:
            raise Unkeyed(f".{name}: field not declared in schema")
        return atom


@dataclass(slots=True, eq=False)
class Atom:
    scalar: Scalar | None = None
    list: ListAtom | None = None
    map: MapAtom | None = None
    everything: Callable[[Any], Json] | None = field(default=None, repr=False)
    """Compiled walker of `all_fields.walker_of`; None until compiled."""
    exact: bool | None = field(default=None, repr=False)
    """Result of `all_fields.is_exact`; None until computed."""

    def for_value(self, value: Any) -> Atom:
        """Return the form that matches the value; all forms if none matches or the value is null."""
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
        """Whether every value has a single owner."""
        if self.map is not None and not self.map.atomic:
            return False
        return self.list is None or not self.list.associative


def _key_reader(atom: ListAtom) -> Callable[[Any], str]:
    if len(atom.keys) == 1:
        return _single_key_reader(atom)

    def read(item: Any) -> str:
        _check_item(item)
        values = {name: item[name] if name in item else atom.defaults.get(name) for name in atom.keys}
        present = {name: value for name, value in values.items() if value is not None or name in item}
        if not present:
            raise _omits_keys(atom)
        return key_element(present)

    return read


def _single_key_reader(atom: ListAtom) -> Callable[[Any], str]:
    """Return a reader equivalent to `key_element`, optimised for a single key."""
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
    note = "(and doesn't have default values for any key fields)"
    return Unkeyed(f"associative list with keys has an element that omits all key fields {names} {note}")


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
"""Atom of values without a schema: granular maps, everything else atomic."""
INT_OR_STRING = Atom(Scalar.UNTYPED, ListAtom(UNTYPED_ATOMIC), MapAtom(element=DEDUCED))
"""Atom of int-or-string. Upstream's schema declares no type here, so a configuration may use any type."""


_SCALARS = {
    NodeScalar.STRING: Scalar.STRING,
    NodeScalar.BYTES: Scalar.STRING,
    NodeScalar.BOOL: Scalar.BOOLEAN,
    NodeScalar.INT32: Scalar.NUMERIC,
    NodeScalar.INT64: Scalar.NUMERIC,
    NodeScalar.FLOAT64: Scalar.NUMERIC,
}
_ZERO_VALUES: dict[Scalar, Any] = {Scalar.STRING: "", Scalar.BOOLEAN: False, Scalar.NUMERIC: 0}
_LEAVES = {scalar: Atom(scalar) for scalar in Scalar}

_OPAQUE = frozenset(f"io.k8s.api.apps.{version}.ControllerRevision.data" for version in ("v1", "v1beta1", "v1beta2"))
"""Fields of unknown type that upstream treats as opaque."""

_ATOMS: WeakKeyDictionary[TypeNode, dict[str, Atom]] = WeakKeyDictionary()
"""Live node → map type of the field → atom."""


def atom_of(node: TypeNode, map_type: str = "") -> Atom:
    """Return the atom of a node. `map_type` overrides the struct's map type for one field."""
    if node.kind is NodeKind.ANY or (node.kind is NodeKind.SCALAR and node.element is not None):
        return DEDUCED
    if node.scalar is NodeScalar.INT_OR_STRING:
        return INT_OR_STRING
    if node.kind is NodeKind.SCALAR:
        assert node.scalar is not None
        return _LEAVES[_SCALARS.get(node.scalar, Scalar.UNTYPED)]
    cached = _ATOMS.setdefault(node, {})
    atom = cached.get(map_type)
    if atom is None:
        # Register before building the parts, because types may be recursive.
        atom = cached[map_type] = Atom()
        _build(atom, node, map_type)
    return atom


def _build(atom: Atom, node: TypeNode, map_type: str) -> None:
    atomic = (map_type or node.map_type) == "atomic"
    if node.kind is NodeKind.STRUCT:
        atom.map = MapAtom({name: _field_atom(node, field) for name, field in node.fields.items()}, atomic=atomic)
        return
    assert node.element is not None
    element = atom_of(node.element)
    if node.kind is NodeKind.MAP:
        atom.map = MapAtom(element=element, atomic=atomic)
    elif node.list_type == "map":
        assert node.element is not None
        keys = (key for key in node.map_keys if key in node.element.fields)
        defaults = {key: _default(node.element, node.element.fields[key]) for key in keys}
        atom.list = ListAtom(
            element,
            associative=True,
            keys=node.map_keys,
            defaults={key: default for key, default in defaults.items() if default is not None},
        )
    else:
        atom.list = ListAtom(element, associative=node.list_type == "set")


def _field_atom(struct: TypeNode, field: Field) -> Atom:
    if f"{struct.name}.{field.name}" in _OPAQUE:
        return UNTYPED_ATOMIC
    return atom_of(field.node, field.map_type)


def _default(struct: TypeNode, field: Field) -> Any:
    """Return the declared default; for a field that Go always writes, its zero value."""
    declared = declared_default(struct.name, field.name)
    if declared is not None or field.pointer or field.omitempty or field.node.scalar is None:
        return declared
    return _ZERO_VALUES.get(_SCALARS.get(field.node.scalar, Scalar.UNTYPED))
