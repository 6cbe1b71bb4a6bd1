"""Enum types of Go, which upstream's published definitions lack: each is shown by the fields that are of that type.

PullPolicy = Always | Never, field imagePullPolicy=14?:string@v1.PullPolicy → {"enum": ["Always", "Never"], …}
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TypeAlias

from pilothouse.machinery.objects import Json
from pilothouse.machinery.wire_facts import FieldFacts, Label, message_named
from tools.builtin_types.differences import differences
from tools.builtin_types.inlining import shown_fields
from tools.builtin_types.sources import BASE, Types, parsed

Enum: TypeAlias = Mapping[str, str]
"""From values to what they mean, which may be empty."""

_SHIPPED = Path(__file__).parent / "enums.toml"
_FURTHER_APART = frozenset(
    {
        "AllocationConfigSource",
        "DeviceAllocationMode",
        "DeviceTaintEffect",
        "DeviceTolerationOperator",
        "DisruptionMode",
        "PatchType",
        "ScopeType",
    }
)
"""Types whose fields have comments that end in an empty line, which published definitions have trimmed away."""
_ELEMENTS = {Label.REPEATED: "items", Label.MAP: "additionalProperties"}


def with_enums(types: Types, version: str = BASE) -> Types:
    """The types with the enum of each field that has one; what is given is not changed, and what has one has it."""
    packages, definitions = parsed(types.structs), dict(types.definitions)
    enums = _enums(version)
    for name, schema in types.definitions.items():
        message = message_named(name)
        package = packages.get(message.package)
        if package is not None and message.message in package.lines:
            facts = shown_fields(package, message.message, packages)
            changed = dict(_changed(schema.get("properties", {}), facts, enums))
            if changed:
                definitions[name] = schema | {"properties": schema["properties"] | changed}
    return replace(types, definitions=definitions)


def _changed(properties: Json, facts: Iterator[FieldFacts], enums: Mapping[str, Enum]) -> Iterator[tuple[str, Json]]:
    for fact in facts:
        enum = enums.get(fact.go_type.rpartition("]")[2])
        if enum is not None and fact.name in properties and "enum" not in properties[fact.name]:
            yield fact.name, _with_enum(properties[fact.name], fact, enum)


def _with_enum(schema: Json, fact: FieldFacts, enum: Enum) -> Json:
    """The meanings of values are told of single values only, and not of the elements of lists and maps."""
    values = sorted(enum)
    if fact.label in _ELEMENTS:
        key = _ELEMENTS[fact.label]
        return schema | {key: _sorted(schema[key] | {"enum": values})}
    space = "\n\n\n" if fact.go_type.rpartition(".")[2] in _FURTHER_APART else "\n\n"
    described = f"{schema.get('description', '')}{space}Possible enum values:\n{_meanings(enum)}".lstrip()
    return _sorted(schema | {"description": described, "enum": values})


def _meanings(enum: Enum) -> str:
    return "\n".join(sorted(f' - `"{value}"` {meaning}'.rstrip() for value, meaning in enum.items()))


@cache
def _enums(version: str) -> dict[str, Enum]:
    """By the last part of the package and the name, as Go's reflection prints types; each stands for one enum."""
    enums = tomllib.loads(_SHIPPED.read_text(encoding="utf-8")) | differences(version).enums
    found = {".".join(name.split(".")[-2:]): enum for name, enum in enums.items() if enum}
    assert len(found) == sum(map(bool, enums.values())), "two enums of one name"
    return found


def _sorted(schema: Json) -> Json:
    return dict(sorted(schema.items()))
