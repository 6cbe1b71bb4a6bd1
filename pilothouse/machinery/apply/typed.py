"""Objects in one API version: field sets, removal of fields, conversion to other versions.

The field set of an applied configuration contains the fields that the applier owns afterwards. Named fields with
content are not members themselves; map entries and list items are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from pilothouse.machinery.apply.atoms import Atom, ListAtom, MapAtom
from pilothouse.machinery.apply.compare import Comparison, compare
from pilothouse.machinery.apply.elements import order
from pilothouse.machinery.apply.fieldset import MEMBER, FieldSet, below, is_member, node_of
from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Typed:
    """Object in one API version."""

    atom: Atom
    value: Any
    api_version: str

    def with_value(self, value: Any) -> Typed:
        return Typed(self.atom, value, self.api_version)

    def field_set(self) -> FieldSet:
        return field_set(self.atom, self.value)

    def named_field_set(self) -> FieldSet:
        """Return the field set including the named fields on the way to each member."""
        return self.with_named_fields(self.field_set())

    def with_named_fields(self, fields: FieldSet) -> FieldSet:
        return with_named_fields(self.atom, fields)

    def remove(self, fields: FieldSet) -> Typed:
        return self.with_value(remove(self.atom, self.value, fields))

    def compare(self, new: Typed) -> Comparison:
        return compare(self.atom, self.value, new.value)


class Converter(Protocol):
    def convert(self, typed: Typed, api_version: str) -> Typed | None:
        """Return the object in another version, or None if the version does not exist. Raises TypedError."""


def field_set(atom: Atom, value: Any) -> FieldSet:
    """Return the field set of a value. Raises Unkeyed."""
    return _children(atom.for_value(value), value)


def _node(atom: Atom, value: Any, *, is_member: bool) -> FieldSet | None:
    form = atom.for_value(value)
    if form.map is not None:
        member, children = form.map.atomic, _children(form, value)
    elif form.list is not None and form.scalar is None:
        member, children = not form.list.associative, _children(form, value)
    else:
        member, children = True, {}
    return node_of(member or is_member, children)


def _children(form: Atom, value: Any) -> FieldSet:
    if form.map is not None and not form.map.atomic and isinstance(value, dict):
        atom = form.map
        out: FieldSet = {}
        for name in sorted(value):
            is_member = name not in atom.fields or value[name] is None or value[name] == {}
            node = _node(atom.child(name), value[name], is_member=is_member)
            if node is not None:
                out[f"f:{name}"] = node
        return out
    if form.list is not None and form.list.associative and isinstance(value, list):
        elements: FieldSet = {}
        for item in value:
            element = form.list.element_of(item)
            node = MEMBER if element in elements else _node(form.list.element, item, is_member=True)
            assert node is not None
            elements[element] = node
        return {element: elements[element] for element in sorted(elements, key=order)}
    return {}


def remove(atom: Atom, value: Any, fields: FieldSet) -> Any:
    """Return the value without the members of `fields`. As upstream, an emptied map or list becomes null."""
    form = atom.for_value(value)
    if form.map is not None:
        return _remove_from_map(form.map, value, fields)
    if form.list is not None and form.scalar is None:
        if not isinstance(value, list) or not form.list.associative:
            return None
        return list(_remaining_items(form.list, value, fields)) or None
    return value


def _remove_from_map(atom: MapAtom, value: Any, fields: FieldSet) -> Any:
    if not isinstance(value, dict) or atom.atomic:
        return None
    out = {}
    for name, child in value.items():
        node = fields.get(f"f:{name}")
        if node is None:
            out[name] = child
        elif not is_member(node):
            out[name] = remove(atom.child(name), child, node)
    return out or None


def _remaining_items(atom: ListAtom, items: list[Any], fields: FieldSet) -> Iterator[Any]:
    for item in items:
        node = fields.get(atom.element_of(item))
        if node is None:
            yield item
        elif not is_member(node):
            yield remove(atom.element, item, node)


def with_named_fields(atom: Atom, fields: FieldSet) -> FieldSet:
    """Return the set with every struct field that has members below it."""
    out: FieldSet = {}
    for key, node in fields.items():
        children = below(node)
        inner = _below(atom, key)
        expanded = with_named_fields(inner, children) if inner is not None else children
        named = key[:2] == "f:" and atom.map is not None and key[2:] in atom.map.fields
        if expanded and (named or is_member(node)):
            expanded = {".": {}, **expanded}
        out[key] = expanded
    return out


def _below(atom: Atom, key: str) -> Atom | None:
    if key[:2] == "f:" and atom.map is not None:
        return atom.map.fields.get(key[2:], atom.map.element)
    if key[:2] == "k:" and atom.list is not None:
        return atom.list.element
    return None
