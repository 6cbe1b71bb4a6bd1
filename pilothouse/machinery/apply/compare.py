"""Comparison of two values of a type: added, modified and removed fields.

A field is in at most one of the three sets. Content of leaves and atomic values is not examined.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import Any

from pilothouse.machinery.apply import fieldset
from pilothouse.machinery.apply.all_fields import all_fields_in, is_exact
from pilothouse.machinery.apply.atoms import Atom, ListAtom, MapAtom
from pilothouse.machinery.checkpoints import checkpoint
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, json_equal


@dataclass(frozen=True, slots=True)
class Comparison:
    """Fields in which a new value differs from an old one."""

    added: fieldset.FieldSet = field(default_factory=dict)
    modified: fieldset.FieldSet = field(default_factory=dict)
    removed: fieldset.FieldSet = field(default_factory=dict)

    @property
    def present(self) -> fieldset.FieldSet:
        """Modified and added fields."""
        return fieldset.union(self.modified, self.added)

    def without(self, excluded: fieldset.FieldSet) -> Comparison:
        """Return the comparison without the members of `excluded` and everything below them."""
        if not excluded:
            return self
        sets = (self.added, self.modified, self.removed)
        return Comparison(*(fieldset.recursive_difference(fields, excluded) if fields else fields for fields in sets))


@dataclass(frozen=True, slots=True)
class _Difference:
    """Difference of one node; None where a set does not contain the node."""

    added: fieldset.FieldSet | None = None
    modified: fieldset.FieldSet | None = None
    removed: fieldset.FieldSet | None = None


_CHANGED = _Difference(modified=fieldset.MEMBER)


def compare(atom: Atom, old: Any, new: Any) -> Comparison:
    """Compare two values. Raises Unkeyed."""
    difference = _compare(atom, old, new)
    if difference is None:
        return Comparison()
    return Comparison(difference.added or {}, difference.modified or {}, difference.removed or {})


def changed_node(atom: Atom, old: Any, new: Any) -> fieldset.FieldSet | None:
    """Return the node of added and modified fields, or None. Raises Unkeyed."""
    difference = _compare(atom, old, new)
    if difference is None or difference.added is None:
        return None if difference is None else difference.modified
    return (
        difference.added if difference.modified is None else fieldset.node_union(difference.modified, difference.added)
    )


def _compare(atom: Atom, old: Any, new: Any) -> _Difference | None:
    """Return the difference, or None for equal values."""
    checkpoint()
    if old == new and is_exact(atom):
        return None
    if atom.map is not None and (atom.scalar is not None or atom.list is not None):
        # The form depends on the value: a change of form removes the old content and adds the new.
        if all(value is None or isinstance(value, dict) for value in (old, new)):
            return _compare_maps(atom, atom.map, old, new)
        if not isinstance(old, dict) and not isinstance(new, dict):
            return _compare_leaves(old, new)
        added = fieldset.below(all_fields_in(atom, new)) if isinstance(new, dict) else {}
        removed = fieldset.below(all_fields_in(atom, old)) if isinstance(old, dict) else {}
        return _Difference(added or None, fieldset.MEMBER, removed or None)
    if atom.map is not None:
        return _compare_maps(atom, atom.map, old, new)
    if atom.list is not None and atom.list.associative:
        return _compare_lists(atom.list, old, new)
    return _compare_leaves(old, new)


def _compare_leaves(old: Any, new: Any) -> _Difference | None:
    return None if json_equal(old, new) else _CHANGED


def _compare_maps(whole: Atom, atom: MapAtom, old: Any, new: Any) -> _Difference | None:
    # If both are empty, null still differs from {}.
    if atom.atomic or not (old or new):
        return _compare_leaves(old, new)
    old, new = old or {}, new or {}
    differences = _Differences(_only_in(whole, new, old), _only_in(whole, old, new))
    for name, was in old.items():
        if name in new:
            child, now = atom.child(name), new[name]
            if was != now or not is_exact(child):  # most values are equal and need no comparison
                differences.put(f"f:{name}", _compare(child, was, now))
    return differences.outcome()


def _only_in(atom: Atom, one: Json, other: Json) -> fieldset.FieldSet:
    """Return the members of one map missing in the other, each with its content."""
    members = {name: value for name, value in one.items() if name not in other}
    return fieldset.below(all_fields_in(atom, members)) if members else {}


def _compare_lists(atom: ListAtom, old: Any, new: Any) -> _Difference | None:
    if not (old or new):
        return _compare_leaves(old, new)
    before, after = _indexed(atom, old or ()), _indexed(atom, new or ())
    differences = _Differences({}, {})
    for element in before.keys() | after.keys():
        old_items, new_items = before.get(element, []), after.get(element, [])
        if len(old_items) == 1 and len(new_items) == 1:
            differences.put(element, _compare(atom.element, old_items[0], new_items[0]))
            continue
        # Several items under one element have one owner, like a leaf.
        if len(old_items) > 1 and len(new_items) > 1:
            differences.put(element, _compare_leaves(old_items, new_items))
            continue
        if new_items:
            differences.added[element] = (
                fieldset.MEMBER if len(new_items) > 1 else all_fields_in(atom.element, new_items[0])
            )
        if old_items:
            differences.removed[element] = (
                fieldset.MEMBER if len(old_items) > 1 else all_fields_in(atom.element, old_items[0])
            )
    return differences.outcome()


def _indexed(atom: ListAtom, items: Iterable[Any]) -> dict[str, list[Any]]:
    out: dict[str, list[Any]] = {}
    for item in items:
        out.setdefault(atom.element_of(item), []).append(item)
    return out


class _Differences:
    """Collects the differences of a node's children."""

    __slots__ = ("added", "modified", "removed")

    def __init__(self, added: fieldset.FieldSet, removed: fieldset.FieldSet) -> None:
        self.added = added
        self.modified: fieldset.FieldSet = {}
        self.removed = removed

    def put(self, key: str, difference: _Difference | None) -> None:
        if difference is None:
            return
        if difference.added is not None:
            self.added[key] = difference.added
        if difference.modified is not None:
            self.modified[key] = difference.modified
        if difference.removed is not None:
            self.removed[key] = difference.removed

    def outcome(self) -> _Difference | None:
        if not (self.added or self.modified or self.removed):
            return None
        return _Difference(
            *(fieldset.ordered(fields) if fields else None for fields in (self.added, self.modified, self.removed))
        )
