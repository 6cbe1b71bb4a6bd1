"""Updater: effect of writes on field ownership, and of an apply on the object.

    update   the writer owns its changes; other managers lose changed fields
    apply    the applier owns the fields in its configuration; fields that it no longer mentions are removed,
             unless another manager owns them

Managers may use other API versions: each manager is compared in its own version. Field sets are first reconciled with
the schema: a field that became atomic is owned as a whole by every manager of its parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from typing import Any, TypeAlias

from pilothouse.machinery.apply import fieldset
from pilothouse.machinery.apply.atoms import DEDUCED, Atom, MapAtom
from pilothouse.machinery.apply.compare import Comparison
from pilothouse.machinery.apply.fieldset import MEMBER, FieldSet, below, is_member
from pilothouse.machinery.apply.managed import Conflicts, FieldManagerConflict, ManagerId, VersionedSet
from pilothouse.machinery.apply.merge import merge
from pilothouse.machinery.apply.typed import Converter, Typed
from pilothouse.machinery.apply.validate import TypedError
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import json_equal

Managers: TypeAlias = Mapping[ManagerId, VersionedSet]


@dataclass(frozen=True, slots=True)
class Applied:
    managers: dict[ManagerId, VersionedSet]
    value: Any
    changed: bool


@dataclass(frozen=True, slots=True)
class _OwnershipChange:
    managers: dict[ManagerId, VersionedSet]
    comparison: Comparison


@dataclass(frozen=True, slots=True)
class Updater:
    converter: Converter
    ignored: FieldSet = field(default_factory=dict)
    """Fields without owner, including their descendants."""

    def update(self, live: Typed, new: Typed, managers: Managers, manager: ManagerId) -> dict[ManagerId, VersionedSet]:
        taken = self._take(live, new, self._reconciled(live, managers), manager, force=True)
        own, change = taken.managers.get(manager), taken.comparison
        fields = change.present
        if own is not None:
            remaining = self._owned(fieldset.difference(own.fields, change.removed))
            fields = fieldset.union(remaining, fields)
        return _with_fields(taken.managers | {manager: VersionedSet(fields, new.api_version, applied=False)})

    def apply(self, live: Typed, config: Typed, managers: Managers, manager: ManagerId, *, force: bool) -> Applied:
        """Apply the configuration. Raises Conflicts unless forced."""
        before = self._reconciled(live, managers)
        now = VersionedSet(self._owned(config.field_set()), config.api_version, applied=True)
        after = before | {manager: now}
        merged = live.with_value(merge(live.atom, live.value, config.value))
        with _failing_as("failed to prune fields"):
            new = prune(self.converter, merged, after.values(), last=before.get(manager), now=now)
        change = self._take(live, new, after, manager, force=force)
        return Applied(change.managers, new.value, changed=not json_equal(live.value, new.value))

    def _owned(self, fields: FieldSet) -> FieldSet:
        return fieldset.recursive_difference(fields, self.ignored) if self.ignored else fields

    def _reconciled(self, live: Typed, managers: Managers) -> dict[ManagerId, VersionedSet]:
        out = {}
        for manager, versioned in managers.items():
            converted = self.converter.convert(live, versioned.api_version)
            if converted is not None:
                out[manager] = versioned.with_fields(reconcile(converted.atom, versioned.fields))
        return out

    def _take(
        self, live: Typed, new: Typed, managers: Managers, manager: ManagerId, *, force: bool
    ) -> _OwnershipChange:
        """Remove changed and removed fields from all other managers."""
        changes = {new.api_version: live.compare(new).without(self.ignored)}
        remaining = dict(managers)
        conflicts: list[FieldManagerConflict] = []
        for other, versioned in managers.items():
            if other == manager:
                continue
            change = self._change(live, new, versioned.api_version, changes)
            if change is None:
                del remaining[other]
                continue
            changed = fieldset.intersection(versioned.fields, change.present)
            if not force:
                conflicts += [FieldManagerConflict(other, path) for path in fieldset.paths(changed)]
            kept = fieldset.difference(fieldset.difference(versioned.fields, changed), change.removed)
            remaining[other] = versioned.with_fields(kept)
        if conflicts:
            raise Conflicts(conflicts)
        return _OwnershipChange(_with_fields(remaining), changes[new.api_version])

    def _change(self, live: Typed, new: Typed, version: str, cache: dict[str, Comparison]) -> Comparison | None:
        if version not in cache:
            with _failing_as("failed to convert old object"):
                old_converted = self.converter.convert(live, version)
            with _failing_as("failed to convert new object"):
                new_converted = self.converter.convert(new, version)
            if old_converted is None or new_converted is None:
                return None
            cache[version] = old_converted.compare(new_converted).without(self.ignored)
        return cache[version]


@contextmanager
def _failing_as(step: str) -> Iterator[None]:
    """Prefix the reason of a TypedError with the step that failed."""
    try:
        yield
    except TypedError as error:
        raise TypedError(f"{step}: {error}") from None


def _with_fields(managers: Managers) -> dict[ManagerId, VersionedSet]:
    """Drop managers that own no fields."""
    return {manager: versioned for manager, versioned in managers.items() if versioned.fields}


def reconcile(atom: Atom, fields: FieldSet) -> FieldSet:
    """Return the field set according to the current schema; the same set if nothing changes."""
    changed = {}
    for key, node in fields.items():
        # A node without children is owned as a whole already.
        if node and (reconciled := _reconciled(_child(atom, key), node)) is not node:
            changed[key] = reconciled
    return fields | changed if changed else fields


def _reconciled(atom: Atom | None, node: FieldSet) -> FieldSet:
    """Return the reconciled node; the same node if nothing changes."""
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
    reconciled = reconcile(atom, children)
    if reconciled is children:
        return node
    return {".": MEMBER, **reconciled} if is_member(node) else reconciled


def _child(atom: Atom, key: str) -> Atom | None:
    """Return the child's atom, or None if the schema does not know the key."""
    if atom.map is not None:
        return atom.map.fields.get(key[2:], atom.map.element) if key[:2] == "f:" else None
    return atom.list.element if atom.list is not None else None


def _is_deduced(atom: MapAtom) -> bool:
    return not atom.fields and atom.element is DEDUCED


@dataclass(frozen=True, slots=True)
class _Pair:
    """Object before and after pruning, in one version."""

    merged: Typed
    pruned: Typed


def prune(
    converter: Converter,
    merged: Typed,
    managers: Iterable[VersionedSet],
    *,
    last: VersionedSet | None,
    now: VersionedSet,
) -> Typed:
    """Remove fields that the applier no longer mentions and no other manager owns.

    `managers` are all owners, including the applier with its fields `now`.
    """
    if (
        last is None
        or not last.fields
        or (last.api_version == now.api_version and not fieldset.difference(last.fields, now.fields))
    ):
        return merged
    with _failing_as("failed to convert merged object to last applied version"):
        converted = converter.convert(merged, last.api_version)
    if converted is None:
        return merged
    pruned = converted.remove(converted.with_named_fields(last.fields))
    pair = _Pair(converted, pruned)
    owned: dict[str, FieldSet] = {}
    for versioned in managers:
        owned[versioned.api_version] = fieldset.union(owned.get(versioned.api_version, {}), versioned.fields)
    # Start with the version of the removal: other versions may need fields that the removal dropped.
    for version in sorted(owned, key=lambda version: version != pair.merged.api_version):
        with _failing_as("failed add back owned items"):
            pair = _add_back_owned_in(converter, pair, version, owned[version])
    with _failing_as("failed add back dangling items"):
        pruned = _add_back_unowned(converter, converted, pair.pruned, last)
    back = converter.convert(pruned, merged.api_version)
    assert back is not None, "the applied version exists"
    return back


def _add_back_owned_in(converter: Converter, pair: _Pair, version: str, owned: FieldSet) -> _Pair:
    with _failing_as(f"failed to convert merged object at version {version}"):
        merged = converter.convert(pair.merged, version)
    with _failing_as(f"failed to convert pruned object at version {version}"):
        pruned = converter.convert(pair.pruned, version)
    if merged is None or pruned is None:
        return pair
    remaining = fieldset.union(pruned.named_field_set(), merged.with_named_fields(owned))
    return _Pair(merged, merged.remove(fieldset.difference(merged.named_field_set(), remaining)))


def _add_back_unowned(converter: Converter, merged: Typed, pruned: Typed, last: VersionedSet) -> Typed:
    """Remove from the merged object only fields that the applier owned."""
    with _failing_as("failed to convert pruned object to last applied version"):
        converted = converter.convert(pruned, last.api_version)
    if converted is None:
        return merged
    removed = fieldset.difference(merged.named_field_set(), converted.named_field_set())
    return merged.remove(fieldset.intersection(removed, merged.with_named_fields(last.fields)))
