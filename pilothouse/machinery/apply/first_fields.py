"""Initial ownership: the fields in which an object without owners differs from an empty object.

Objects of one kind are compared with the same empty object each time, so the comparison is compiled once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from pilothouse.machinery.apply.all_fields import all_fields_in
from pilothouse.machinery.apply.atoms import Atom
from pilothouse.machinery.apply.compare import changed_node
from pilothouse.machinery.apply.fieldset import FieldSet, below, difference, recursive_difference
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

_Changed: TypeAlias = Callable[[Any], FieldSet | None]
"""Return the node of added and changed fields of a new value, or None."""


class FirstFields:
    """Compiled comparison. Members of `unowned` have no owner; neither do members of `ignored` and their
    descendants."""

    __slots__ = ("_changed", "_ignored", "_unowned")

    def __init__(self, atom: Atom, empty: Json, *, unowned: FieldSet, ignored: FieldSet) -> None:
        self._changed = _compiled(atom, empty, unowned)
        self._unowned = {} if isinstance(self._changed, _Struct) else unowned
        self._ignored = ignored

    def __call__(self, new: Json) -> FieldSet:
        """Return the owned fields of a new object. Raises Unkeyed."""
        fields = self._changed(new) or {}
        if self._ignored:
            fields = recursive_difference(fields, self._ignored)
        return difference(fields, self._unowned) if self._unowned else fields


@dataclass(frozen=True, slots=True)
class _Struct:
    atom: Atom
    empty: Json
    known: frozenset[str]
    """Fields of the empty struct and fields without owner; all other fields were added as a whole."""
    compared: tuple[tuple[str, str, _Changed], ...]
    """Fields of the empty struct: (key, name, comparison)."""

    def __call__(self, new: Any) -> FieldSet | None:
        if not new:
            return changed_node(self.atom, self.empty, new)
        known = self.known
        added = {name: value for name, value in new.items() if name not in known}
        fields = below(all_fields_in(self.atom, added)) if added else {}
        for key, name, changed in self.compared:
            if name in new and (node := changed(new[name])) is not None:
                fields[key] = node
        return dict(sorted(fields.items())) or None


def _compiled(atom: Atom, empty: Any, unowned: FieldSet) -> _Changed:
    if not _is_struct(atom) or not isinstance(empty, dict) or not _can_leave_out(atom, empty, unowned):
        return lambda new: changed_node(atom, empty, new)
    assert atom.map is not None
    left_out = {name for name in atom.map.fields if name not in empty and f"f:{name}" in unowned}
    compared = ((name, value, unowned.get(f"f:{name}", {})) for name, value in empty.items())
    compiled = ((f"f:{name}", name, _compiled(atom.map.child(name), value, own)) for name, value, own in compared)
    return _Struct(atom, empty, frozenset({*empty, *left_out}), tuple(compiled))


def _is_struct(atom: Atom) -> bool:
    """Report whether all fields are known and owned individually."""
    return atom.map is not None and atom.map.element is None and not (atom.map.atomic or atom.list or atom.scalar)


def _can_leave_out(atom: Atom, empty: Json, unowned: FieldSet) -> bool:
    """Report whether all unowned fields are leaves, or structs of the empty object with the same property."""
    assert atom.map is not None
    for key, node in below(unowned).items():
        child = atom.map.fields.get(key[2:])
        if child is None:
            continue
        if child.is_leaf and not below(node) and key[2:] not in empty:
            continue
        inner = empty.get(key[2:])
        if not (_is_struct(child) and isinstance(inner, dict) and _can_leave_out(child, inner, node)):
            return False
    return True
