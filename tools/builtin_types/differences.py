"""Go's types of other minor versions, as differences from BASE: `differences/1.37.toml` and so on.

`[structs]` maps a package to lines in the notation of Go structs: a line replaces the line of the same struct or alias,
or adds it; `-Name` removes the struct; an empty text removes the package. `[enums]` replaces types of `enums.toml`; an
empty table removes the type. `[defaults]` adds to `overlay.toml`, whose fields and defaults apply in every version
that has their struct. `[printed]` has descriptions of printer columns that are not the description of the field.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from pilothouse.machinery.release import RELEASES
from pilothouse.machinery.wire_facts import message_named
from tools.builtin_types.overlay import Overlay
from tools.builtin_types.sources import BASE, Types, parsed

OTHERS = tuple(name for name in RELEASES if name != BASE)

_FOLDER = Path(__file__).parent / "differences"
_NAME = re.compile(r"use \S+|[^!: ]+")


@dataclass(frozen=True)
class Differences:
    structs: dict[str, str] = field(default_factory=dict)
    enums: dict[str, dict[str, str]] = field(default_factory=dict)
    defaults: dict[str, Any] = field(default_factory=dict)
    printed: dict[str, str] = field(default_factory=dict)


@cache
def differences(version: str) -> Differences:
    """Return the differences of a version; those of BASE are empty."""
    if version == BASE:
        return Differences()
    return Differences(**tomllib.loads((_FOLDER / f"{version}.toml").read_text("utf-8")))


def structs_of(version: str, base: Mapping[str, str]) -> dict[str, str]:
    """Return the structs of a version by package, from the structs of BASE."""
    out = dict(base)
    for package, text in differences(version).structs.items():
        if text:
            out[package] = _changed(base.get(package, ""), text)
        else:
            del out[package]
    return out


def _changed(base: str, text: str) -> str:
    lines = {_name(line): line for line in base.splitlines()}
    for line in text.splitlines():
        if line.startswith("-"):
            del lines[line[1:]]
        else:
            lines[_name(line)] = line
    names = sorted(lines, key=lambda name: (not name.startswith("use "), name))
    return "".join(f"{lines[name]}\n" for name in names)


def _name(line: str) -> str:
    match = _NAME.match(line)
    assert match is not None, line
    return match[0]


def overlay_of(version: str, overlay: Overlay, types: Types) -> Overlay:
    """Return the overlay of a version. The overlay of BASE is complete: what has no place there is an error."""
    if version == BASE:
        return overlay
    packages = parsed(types.structs)

    def has(definition: str) -> bool:
        name = message_named(definition)
        added = any(struct.name == definition for struct in overlay.structs)
        return added or (name.package in packages and name.message in packages[name.package].lines)

    added = [row for row in overlay.fields if has(row.of)]
    defaults = {place: value for place, value in overlay.defaults.items() if has(place.rpartition(".")[0])}
    return replace(overlay, fields=added, defaults={**defaults, **differences(version).defaults})
