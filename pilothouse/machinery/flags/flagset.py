"""Reads a command line as pflag does.

`--flag value`, `--flag=value`, `-v2`, `-v=2` and `-v 2` all work; a boolean alone means true and never takes the
next argument; underscores in names count as dashes; after `--` everything is positional.
"""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.flags.declare import Flag, flags_of


class FlagError(Exception):
    """A command line that can not be read."""


@dataclass(frozen=True, slots=True)
class ParsedFlags:
    values: dict[str, Any]
    """Only what was given, by flag name."""
    positionals: list[str]


def parse(flags: Iterable[Flag], arguments: Iterable[str]) -> ParsedFlags:
    """Raises FlagError at the first argument that makes no sense."""
    return _FlagParser(flags, arguments).run()


class _FlagParser:
    def __init__(self, flags: Iterable[Flag], arguments: Iterable[str]) -> None:
        self._by_name = {flag.name: flag for flag in flags}
        self._by_shorthand = {flag.shorthand: flag for flag in self._by_name.values() if flag.shorthand}
        self._rest: Iterator[str] = iter(arguments)
        self._out = ParsedFlags({}, [])

    def run(self) -> ParsedFlags:
        for argument in self._rest:
            if argument == "--":
                self._out.positionals.extend(self._rest)
            elif argument.startswith("--"):
                name, equals, value = argument[2:].partition("=")
                flag = self._by_name.get(name.replace("_", "-"))
                if flag is None:
                    raise FlagError(self._unknown(name) if name else f"bad flag syntax: {argument}")
                self._set(flag, f"--{flag.name}", value if equals else None)
            elif argument.startswith("-") and len(argument) > 1:
                self._short(argument)
            else:
                self._out.positionals.append(argument)
        return self._out

    def _unknown(self, name: str) -> str:
        return f"unknown flag: --{name}{did_you_mean(f'--{name}', (f'--{known}' for known in self._by_name))}"

    def _short(self, argument: str) -> None:
        flag = self._by_shorthand.get(argument[1])
        if flag is None:
            raise FlagError(f"unknown shorthand flag: '{argument[1]}' in {argument}")
        value = argument[2:].removeprefix("=") if len(argument) > 2 else None
        self._set(flag, f"-{flag.shorthand}, --{flag.name}", value)

    def _set(self, flag: Flag, shown: str, text: str | None) -> None:
        if text is None:
            text = "true" if not flag.type.name else next(self._rest, None)
        if text is None:
            raise FlagError(f"flag needs an argument: {shown.rpartition(' ')[2]}")
        try:
            value = flag.type.parse(text)
        except ValueError as error:
            raise FlagError(_refusal(flag, shown, text, error)) from None
        before = self._out.values.get(flag.name)
        if before is not None and flag.type.merge is not None:
            value = flag.type.merge(before, value)
        self._out.values[flag.name] = value


def _refusal(flag: Flag, shown: str, text: str, error: ValueError) -> str:
    """Return pflag's words for upstream's flags, and plain words for flags of our own."""
    if flag.group and flag.type.expected:
        return invalid_value(text, f"--{flag.name}", flag.type.expected)
    return f'invalid argument "{text}" for "{shown}" flag: {error}'


def invalid_value(text: str, flag: str, expected: str) -> str:
    """Return the message that refuses the value of a flag that upstream does not have."""
    return f'invalid value "{text}" for {flag}: expected {expected}'


_SIMILARITY = 0.7
"""Lower bound of difflib's ratio: below it a suggestion misleads more often than it helps."""
_LONGEST = 64
"""Characters. Longer words are no misspelt names, and the comparison is quadratic in their length."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean NAME?` for the known name that is closest to the word, or an empty string.

    >>> did_you_mean("--secure-prot", ["--secure-port", "--data-dir"])
    '; did you mean --secure-port?'
    """
    from difflib import get_close_matches  # imported late: only a refused command line needs difflib

    if len(word) > _LONGEST:
        return ""
    closest = get_close_matches(word, sorted(set(known)), n=1, cutoff=_SIMILARITY)
    return f"; did you mean {closest[0]}?" if closest else ""


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
