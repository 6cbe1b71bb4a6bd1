"""Structs that are inlined in others: JSON shows their fields among those of the outer struct, protobuf nests them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pilothouse.machinery.wire_facts import FieldFacts, MessageName, Package, definition_name


def shown_fields(package: Package, message: str, packages: Mapping[str, Package]) -> Iterator[FieldFacts]:
    """The fields that JSON shows, those of inlined structs in their place."""
    for fact in package.fields(message).values():
        if fact.inline:
            inner, _, name = fact.type.rpartition(".")
            yield from shown_fields(packages[inner], name, packages)
        else:
            yield fact


def shown_by(packages: Mapping[str, Package]) -> dict[MessageName, set[str]]:
    """Struct → the definitions that show its fields: its own, and those of the structs that inline it."""
    out: dict[MessageName, set[str]] = {}
    for package in packages.values():
        for message in package.lines:
            for name in _structs_in(package, message, packages):
                out.setdefault(name, set()).add(definition_name(package.name, message))
    return out


def _structs_in(package: Package, message: str, packages: Mapping[str, Package]) -> Iterator[MessageName]:
    yield MessageName(package.name, message)
    for fact in package.fields(message).values():
        if fact.inline:
            inner, _, name = fact.type.rpartition(".")
            yield from _structs_in(packages[inner], name, packages)
