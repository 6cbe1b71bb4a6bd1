"""Atoms of type trees."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from pilothouse.machinery.apply.atoms import DEDUCED, INT_OR_STRING, UNTYPED_ATOMIC, Atom, ListAtom, MapAtom, Scalar
from pilothouse.machinery.generated import declared_default
from pilothouse.machinery.schema.nodes import Field, NodeKind, TypeNode
from pilothouse.machinery.schema.nodes import Scalar as NodeScalar

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
    known = _ATOMS.setdefault(node, {})
    atom = known.get(map_type)
    if atom is None:
        # Register before building the parts, because types may be recursive.
        atom = known[map_type] = Atom()
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
