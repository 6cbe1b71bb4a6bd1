"""Field sets of whole values, by walkers compiled once per atom: for values added or removed as a whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from pilothouse.machinery.apply.atoms import DEDUCED, INT_OR_STRING, Atom, ListAtom, MapAtom
from pilothouse.machinery.apply.elements import order
from pilothouse.machinery.apply.fieldset import MEMBER, FieldSet
from pilothouse.machinery.checkpoints import checkpoint
from pilothouse.machinery.dataclass import dataclass

Walker: TypeAlias = Callable[[Any], FieldSet]

_MOST_SHAPES = 32
_LARGEST_SHAPE = 1024
"""Characters of all names plus eight per name. Clients choose the order of fields and may add fields."""


def all_fields_in(atom: Atom, value: Any) -> FieldSet:
    """Return the node of a value with every field and item in it. Raises Unkeyed."""
    return (atom.everything or walker_of(atom))(value)


def walker_of(atom: Atom) -> Walker:
    if atom.everything is None:
        atom.everything = _compile(atom)
    return atom.everything


def is_exact(atom: Atom) -> bool:
    """Report whether Python's equality is sufficient. Without a schema, True and 1 may occupy the same place."""
    if atom.exact is None:
        atom.exact = not _reaches_deduced(atom, set())
    return atom.exact


def _reaches_deduced(atom: Atom, seen: set[int]) -> bool:
    if atom is DEDUCED:
        return True
    # Decoding guarantees an int or a string for such a type.
    if atom is INT_OR_STRING or id(atom) in seen:
        return False
    seen.add(id(atom))
    below = [*(atom.map.fields.values() if atom.map else ()), atom.map and atom.map.element]
    below.append(atom.list and atom.list.element)
    return any(child is not None and _reaches_deduced(child, seen) for child in below)


def _compile(atom: Atom) -> Walker:
    if atom.is_leaf:
        return lambda value: MEMBER
    if atom.map is None:
        assert atom.list is not None
        return _list_walker(atom.list)
    walk = _struct_walker(atom.map) if atom.map.element is None else _map_walker(atom.map)
    if atom.list is None and atom.scalar is None:
        return walk
    return lambda value: walk(value) if isinstance(value, dict) else MEMBER


@dataclass(frozen=True, slots=True)
class _Shape:
    """Precomputed field set of structs with the same field names: a template and the children to traverse."""

    template: FieldSet
    """Field set as if every field were a leaf, in order."""
    inner: tuple[tuple[str, str, Atom], ...]
    """Children that are not leaves: (key, name, atom)."""


def _struct_walker(atom: MapAtom) -> Walker:
    """Return a walker with cached shapes. Objects of one kind mostly set the same fields, so only non-leaves are
    traversed."""
    shapes: dict[tuple[str, ...], _Shape] = {}

    def walk(value: Any) -> FieldSet:
        if not value:
            return MEMBER
        names = tuple(value)
        shape = shapes.get(names)
        if shape is None:
            shape = _shape_of(atom, names)
            if sum(map(len, names)) + 8 * len(names) <= _LARGEST_SHAPE:
                if len(shapes) >= _MOST_SHAPES:
                    shapes.clear()
                shapes[names] = shape
        out = shape.template.copy()
        for key, name, child in shape.inner:
            out[key] = (child.everything or walker_of(child))(value[name])
        return out

    return walk


def _shape_of(atom: MapAtom, names: tuple[str, ...]) -> _Shape:
    ordered = sorted(names)
    inner = ((f"f:{name}", name, atom.child(name)) for name in ordered)
    template = {".": MEMBER} | {f"f:{name}": MEMBER for name in ordered}
    return _Shape(template, tuple(entry for entry in inner if not entry[2].is_leaf))


def _map_walker(atom: MapAtom) -> Walker:
    def walk(value: Any) -> FieldSet:
        if not value:
            return MEMBER
        out: FieldSet = {".": MEMBER}
        for name in sorted(value):
            checkpoint()
            out[f"f:{name}"] = all_fields_in(atom.child(name), value[name])
        return out

    return walk


def _list_walker(atom: ListAtom) -> Walker:
    def walk(value: Any) -> FieldSet:
        if not value:
            return MEMBER
        out: FieldSet = {}
        for item in value:
            element = atom.element_of(item)
            # Items with equal keys have one owner.
            out[element] = MEMBER if element in out else all_fields_in(atom.element, item)
        elements = sorted(out, key=order) if len(out) > 1 else out
        return {".": MEMBER} | {element: out[element] for element in elements}

    return walk
