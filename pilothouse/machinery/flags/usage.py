"""The help: flags in named sections, sorted by name, wrapped to the terminal."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable

from pilothouse.machinery.flags.declare import Flag

_INDENT = " " * 16


def format_section(title: str, flags: Iterable[Flag], columns: int = 0) -> str:
    width = max(columns or shutil.get_terminal_size((100, 24)).columns, 40)
    heading = f"{title[:1].upper()}{title[1:]} flags:"
    entries = [_entry(flag, width) for flag in sorted(flags, key=lambda flag: flag.name)]
    return "\n".join([heading, "", *entries, ""])


def _entry(flag: Flag, width: int) -> str:
    name = f"  -{flag.shorthand}, --{flag.name}" if flag.shorthand else f"      --{flag.name}"
    text = f"{flag.help} (default {flag.type.show(flag.default)})" if flag.default else flag.help
    lines = (textwrap.fill(line, width, initial_indent=_INDENT, subsequent_indent=_INDENT) for line in text.split("\n"))
    return "\n".join([f"{name} {flag.type.name}".rstrip(), *lines])
