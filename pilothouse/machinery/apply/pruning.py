"""Removing what an applier no longer mentions.

A field or item goes if and only if the applier owned it the last time, does not mention it now,
and nobody else owns it.
"""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.machinery.apply import fieldset
from pilothouse.machinery.apply.fieldset import FieldSet
from pilothouse.machinery.apply.managed import VersionedSet
from pilothouse.machinery.apply.typed import Converter, Typed
from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class _Pair:
    """The object before and after the removal, in one version."""

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
    """`managers` are all who own something, the applier with what it owns `now` among them."""
    if (
        last is None
        or not last.fields
        or (last.api_version == now.api_version and not fieldset.difference(last.fields, now.fields))
    ):
        return merged
    there = converter.convert(merged, last.api_version)
    if there is None:
        return merged
    pruned = there.remove(there.with_named_fields(last.fields))
    pair = _Pair(there, pruned)
    owned: dict[str, FieldSet] = {}
    for versioned in managers:
        owned[versioned.api_version] = fieldset.union(owned.get(versioned.api_version, {}), versioned.fields)
    # The version of the removal first, since other versions may need what it removed too much of.
    for version in sorted(owned, key=lambda version: version != pair.merged.api_version):
        pair = _add_back_owned_in(converter, pair, version, owned[version])
    pruned = pair.pruned
    pruned = _add_back_unowned(converter, there, pruned, last)
    back = converter.convert(pruned, merged.api_version)
    assert back is not None, "the applied version exists"
    return back


def _add_back_owned_in(converter: Converter, pair: _Pair, version: str, owned: FieldSet) -> _Pair:
    merged, pruned = converter.convert(pair.merged, version), converter.convert(pair.pruned, version)
    if merged is None or pruned is None:
        return pair
    kept = fieldset.union(pruned.named_field_set(), merged.with_named_fields(owned))
    return _Pair(merged, merged.remove(fieldset.difference(merged.named_field_set(), kept)))


def _add_back_unowned(converter: Converter, merged: Typed, pruned: Typed, last: VersionedSet) -> Typed:
    """Removes from the whole object only what the applier owned."""
    there = converter.convert(pruned, last.api_version)
    if there is None:
        return merged
    gone = fieldset.difference(merged.named_field_set(), there.named_field_set())
    return merged.remove(fieldset.intersection(gone, merged.with_named_fields(last.fields)))
