"""The help: flags of our own by task, then upstream's by section; sorted by name and wrapped to the terminal."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable
from typing import Any

from pilothouse.machinery.flags.declare import Flag, flags_of

_INDENT = " " * 16


def help_sections(sections: Iterable[type[Any]]) -> list[tuple[str, list[Flag]]]:
    """Return (title, flags) pairs: task groups in the order of their first flag, then the sections without them."""
    groups: dict[str, list[Flag]] = {}
    rest: list[tuple[str, list[Flag]]] = []
    for section in sections:
        upstream: list[Flag] = []
        for flag in flags_of(section):
            (groups.setdefault(flag.group, []) if flag.group else upstream).append(flag)
        if upstream:
            rest.append((section.title, upstream))
    return [*groups.items(), *rest]


def format_section(title: str, flags: Iterable[Flag], columns: int = 0) -> str:
    width = max(columns or shutil.get_terminal_size((100, 24)).columns, 40)
    heading = f"{title[:1].upper()}{title[1:]} flags:"
    entries = [_entry(flag, width) for flag in sorted(flags, key=lambda flag: flag.name)]
    return "\n".join([heading, "", *entries, ""])


def _entry(flag: Flag, width: int) -> str:
    name = f"  -{flag.shorthand}, --{flag.name}" if flag.shorthand else f"      --{flag.name}"
    text = f"{flag.help} (default {flag.type.show(flag.default)})" if flag.default else flag.help
    wrap = textwrap.TextWrapper(width, initial_indent=_INDENT, subsequent_indent=_INDENT, break_on_hyphens=False)
    lines = (wrap.fill(line) for line in text.split("\n"))
    return "\n".join([f"{name} {flag.type.name}".rstrip(), *lines])
