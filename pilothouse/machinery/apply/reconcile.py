"""Bringing a field set up to date with a schema that has changed since the set was written.

A field that became atomic is owned as a whole by whoever owned something in it.
"""

from __future__ import annotations

from pilothouse.machinery.apply.atoms import DEDUCED, Atom, MapAtom
from pilothouse.machinery.apply.fieldset import MEMBER, FieldSet, below, is_member


def reconcile(atom: Atom, fields: FieldSet) -> FieldSet:
    """The set itself where nothing changes."""
    changed = {}
    for key, node in fields.items():
        # What has nothing below it is owned as a whole already.
        if node and (found := _reconciled(_child(atom, key), node)) is not node:
            changed[key] = found
    return fields | changed if changed else fields


def _reconciled(atom: Atom | None, node: FieldSet) -> FieldSet:
    """The node itself where nothing changes in it."""
    if atom is None:
        return node
    if atom.map is not None:
        if atom.map.atomic:
            return MEMBER
        return node if _is_deduced(atom.map) else _below(atom, node)
    if atom.scalar is not None or atom.list is None:
        return node
    return _below(atom, node) if atom.list.associative else MEMBER


def _below(atom: Atom, node: FieldSet) -> FieldSet:
    children = below(node)
    found = reconcile(atom, children)
    if found is children:
        return node
    return {".": MEMBER, **found} if is_member(node) else found


def _child(atom: Atom, key: str) -> Atom | None:
    """None for what the schema does not know."""
    if atom.map is not None:
        return atom.map.fields.get(key[2:], atom.map.element) if key[:2] == "f:" else None
    return atom.list.element if atom.list is not None else None


def _is_deduced(atom: MapAtom) -> bool:
    return not atom.fields and atom.element is DEDUCED
