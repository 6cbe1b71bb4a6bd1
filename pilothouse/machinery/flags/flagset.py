"""Reads a command line as pflag does.

`--flag value`, `--flag=value`, `-v2`, `-v=2` and `-v 2` all work; a boolean alone means true and never takes the
next argument; underscores in names count as dashes; after `--` everything is positional.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.flags.declare import Flag
from pilothouse.machinery.nearest import did_you_mean


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
