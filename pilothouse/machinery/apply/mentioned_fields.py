"""The fields that an applied configuration mentions, which is what its applier owns afterwards.

Named fields with something below them are not mentioned themselves; entries of maps and items of lists are.
"""

from __future__ import annotations

from typing import Any

from pilothouse.machinery.apply.atoms import Atom, ListAtom
from pilothouse.machinery.apply.elements import order
from pilothouse.machinery.apply.fieldset import MEMBER, FieldSet, node_of


def field_set(atom: Atom, value: Any) -> FieldSet:
    """Raises Unkeyed."""
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
        return _list_children(form.list, value)
    return {}


def _list_children(atom: ListAtom, items: list[Any]) -> FieldSet:
    out: FieldSet = {}
    for item in items:
        element = atom.element_of(item)
        node = MEMBER if element in out else _node(atom.element, item, is_member=True)
        assert node is not None
        out[element] = node
    return {element: out[element] for element in sorted(out, key=order)}
