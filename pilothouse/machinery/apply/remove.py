"""Taking fields and items out of a value, or taking out all others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pilothouse.machinery.apply.atoms import Atom, ListAtom, MapAtom
from pilothouse.machinery.apply.fieldset import FieldSet, below, is_member


def remove(atom: Atom, value: Any, fields: FieldSet) -> Any:
    """The value without what `fields` holds. A map or list from which all is taken becomes null, as upstream."""
    form = atom.for_value(value)
    if form.map is not None:
        return _remove_from_map(form.map, value, fields)
    if form.list is not None and form.scalar is None:
        return _remove_from_list(form.list, value, fields)
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


def _remove_from_list(atom: ListAtom, value: Any, fields: FieldSet) -> Any:
    if not isinstance(value, list) or not atom.associative:
        return None
    return list(_kept_items(atom, value, fields)) or None


def _kept_items(atom: ListAtom, items: list[Any], fields: FieldSet) -> Iterator[Any]:
    for item in items:
        node = fields.get(atom.element_of(item))
        if node is None:
            yield item
        elif not is_member(node):
            yield remove(atom.element, item, node)


def with_named_fields(atom: Atom, fields: FieldSet) -> FieldSet:
    """The set, and in it every struct field that has members below it."""
    out: FieldSet = {}
    for key, node in fields.items():
        children = below(node)
        inner = _below(atom, key)
        grown = with_named_fields(inner, children) if inner is not None else children
        named = key[:2] == "f:" and atom.map is not None and key[2:] in atom.map.fields
        if grown and (named or is_member(node)):
            grown = {".": {}, **grown}
        out[key] = grown
    return out


def _below(atom: Atom, key: str) -> Atom | None:
    if key[:2] == "f:" and atom.map is not None:
        return atom.map.fields.get(key[2:], atom.map.element)
    if key[:2] == "k:" and atom.list is not None:
        return atom.list.element
    return None
