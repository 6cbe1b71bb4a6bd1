"""Additions of an overlay that are there already, and would be lost without a word, or that have no place to go to."""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.machinery.wire_facts import message_named
from tools.builtin_types.inlining import shown_by
from tools.builtin_types.overlay import AddedStruct, Overlay
from tools.builtin_types.sources import Types, parsed


def clashes(types: Types, overlay: Overlay) -> Iterator[str]:
    """A line for each."""
    for struct in overlay.structs:
        yield from _of_struct(types, struct)
    yield from _of_fields(types, overlay)
    yield from _of_defaults(types, overlay)


def _of_struct(types: Types, struct: AddedStruct) -> Iterator[str]:
    name, packages = message_named(struct.name), parsed(types.structs)
    if name.package not in packages:
        yield f"{struct.name} is of a package that has no Go structs"
    elif name.message in packages[name.package].lines or struct.name in types.definitions:
        yield f"there is a struct {struct.name} already"


def _of_fields(types: Types, overlay: Overlay) -> Iterator[str]:
    shown = shown_by(parsed(types.structs)) if overlay.fields else {}
    known = {name for places in shown.values() for name in places} | {struct.name for struct in overlay.structs}
    for field in overlay.fields:
        if field.of not in known:
            yield f"there is no struct {field.of} that could have a field {field.name}"
        for place in sorted(shown.get(message_named(field.of), ())):
            if field.name in types.definitions.get(place, {}).get("properties", ()):
                yield f"{place} has a field {field.name} already"


def _of_defaults(types: Types, overlay: Overlay) -> Iterator[str]:
    added = {(field.of, field.name) for field in overlay.fields}
    for place in overlay.defaults:
        definition, _, name = place.rpartition(".")
        published = types.definitions.get(definition, {}).get("properties", ())
        if name not in published and (definition, name) not in added:
            yield f"there is no field {place} that could have a default"
