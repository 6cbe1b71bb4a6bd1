"""Flags: declarations as fields of frozen dataclasses, and a parser with pflag's rules.

    @dataclass(frozen=True)
    class EtcdOptions:
        servers: tuple[str, ...] = flag("etcd-servers", STRINGS, (), "List of etcd servers to connect with.")

The parser accepts `--flag value`, `--flag=value`, `-v2`, `-v=2` and `-v 2`. A boolean flag never takes the next
argument. Underscores in names equal dashes. After `--` all arguments are positional.
"""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field, fields
from typing import Any, Generic, TypeVar

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.durations import format_duration, parse_duration

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Flag:
    name: str
    type: FlagType[Any]
    default: Any
    help: str
    shorthand: str = ""
    secret: bool = False
    group: str = ""
    """Task group in the help, for flags unknown to upstream; empty for upstream's flags."""
    details: Callable[[], str] | None = None
    """Further help for the reference page; computing it would slow down --help."""

    def shown(self, value: Any) -> str:
        """Return the value as text, without the quotes of the help. Secrets are masked."""
        if self.secret and value:
            return "<hidden>"
        return value if isinstance(value, str) else self.type.show(value)


def flag(
    name: str,
    type: FlagType[T],
    default: T,
    help: str,
    *,
    shorthand: str = "",
    secret: bool = False,
    group: str = "",
    details: Callable[[], str] | None = None,
) -> T:
    """Declare the flag of a dataclass field. Values of secret flags are masked in all output."""
    declared = Flag(name, type, default, help, shorthand, secret, group, details)
    value: Any = field(default_factory=lambda: default, metadata={"flag": declared})
    return value  # type: ignore[no-any-return]  # dataclass() turns it into the default


def flags_of(section: type[Any]) -> list[Flag]:
    return [item.metadata["flag"] for item in fields(section) if "flag" in item.metadata]


def shown_values(section: Any) -> dict[str, str]:
    """Return flag name → rendered value (`Flag.shown`) for all flags of a section."""
    declared = [
        (item.metadata["flag"], getattr(section, item.name)) for item in fields(section) if "flag" in item.metadata
    ]
    return {flag.name: flag.shown(value) for flag, value in declared}


S = TypeVar("S")


def build(section: type[S], values: dict[str, Any]) -> S:
    """Build a section from values by flag name; missing flags have their defaults."""
    declared: Iterable[Any] = fields(section)  # type: ignore[arg-type]
    names = {item.metadata["flag"].name: item.name for item in declared if "flag" in item.metadata}
    return section(**{names[name]: value for name, value in values.items() if name in names})


_NANOSECONDS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class FlagType(Generic[T]):
    """Type of a flag's values. `parse` raises ValueError with Go's message."""

    name: str
    """Name in the help; empty for booleans, the only flags without a value."""
    parse: Callable[[str], T]
    merge: Callable[[T, T], T] | None = None
    """Merges the values of a repeated flag; None = the last value wins."""
    show: Callable[[T], str] = str
    expected: str = ""
    """Accepted values in plain words, for messages about flags unknown to upstream."""


def _bool(text: str) -> bool:
    if text in ("1", "t", "T", "TRUE", "true", "True"):
        return True
    if text in ("0", "f", "F", "FALSE", "false", "False"):
        return False
    raise ValueError(f'strconv.ParseBool: parsing "{text}": invalid syntax')


def _int(text: str) -> int:
    try:
        return int(text, 8 if re.fullmatch(r"[+-]?0\d+", text) else 0)
    except ValueError:
        raise ValueError(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f'strconv.ParseFloat: parsing "{text}": invalid syntax') from None


def _ip(text: str) -> str:
    import ipaddress

    try:
        return str(ipaddress.ip_address(text.strip())) if text else ""
    except ValueError:
        raise ValueError(f'failed to parse IP: "{text}"') from None


def _seconds(text: str) -> float:
    return parse_duration(text) / _NANOSECONDS


def _show_seconds(seconds: float) -> str:
    return format_duration(round(seconds * _NANOSECONDS))


def _strings(text: str) -> tuple[str, ...]:
    if '"' not in text:
        return tuple(text.split(",")) if text else ()
    import csv

    return tuple(next(csv.reader([text], strict=True)))


def _array(text: str) -> tuple[str, ...]:
    return (text,)


def _bool_map(text: str) -> dict[str, bool]:
    out = {}
    for pair in filter(None, text.split(",")):
        key, equals, value = pair.strip().partition("=")
        if not equals:
            raise ValueError(f"missing bool value for {key.strip()}")
        try:
            out[key.strip()] = _bool(value.strip())
        except ValueError as error:
            raise ValueError(f"invalid value of {key.strip()}={value.strip()}, err: {error}") from None
    return out


def _configuration_map(text: str) -> dict[str, str]:
    pairs = (pair.partition("=") for pair in filter(None, text.split(",")))
    return {key.strip(): value.strip() for key, _, value in pairs}


def _show_map(value: dict[str, Any]) -> str:
    return ",".join(f"{key}={item}" for key, item in value.items())


BOOL = FlagType("", _bool, show=lambda value: str(value).lower(), expected="true or false")
INT = FlagType("int", _int, expected="a whole number")
FLOAT = FlagType("float", _float, show=lambda value: f"{value:g}", expected="a number")
STRING = FlagType("string", str, show=lambda value: f'"{value}"')
IP = FlagType("ip", _ip, expected="an IP address")
DURATION = FlagType("duration", _seconds, show=_show_seconds, expected="a duration such as 500ms, 30s or 5m")
STRINGS = FlagType("strings", _strings, merge=lambda old, new: old + new, show=lambda value: f"[{','.join(value)}]")
STRING_ARRAY = FlagType("stringArray", _array, merge=lambda old, new: old + new, show=lambda v: f"[{','.join(v)}]")
BOOL_MAP = FlagType("mapStringBool", _bool_map, merge=lambda old, new: {**old, **new}, show=_show_map)
CONFIGURATION_MAP = FlagType(
    "mapStringString", _configuration_map, merge=lambda old, new: {**old, **new}, show=_show_map
)


class FlagError(Exception):
    """An invalid command line."""


@dataclass(frozen=True, slots=True)
class ParsedFlags:
    values: dict[str, Any]
    """Flag name → value, for the flags on the command line."""
    positionals: list[str]


def parse(flags: Iterable[Flag], arguments: Iterable[str]) -> ParsedFlags:
    """Parse a command line. Raises FlagError at the first invalid argument."""
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

    def _set(self, flag: Flag, label: str, text: str | None) -> None:
        if text is None:
            text = "true" if not flag.type.name else next(self._rest, None)
        if text is None:
            raise FlagError(f"flag needs an argument: {label.rpartition(' ')[2]}")
        try:
            value = flag.type.parse(text)
        except ValueError as error:
            raise FlagError(_refusal(flag, label, text, error)) from None
        before = self._out.values.get(flag.name)
        if before is not None and flag.type.merge is not None:
            value = flag.type.merge(before, value)
        self._out.values[flag.name] = value


def _refusal(flag: Flag, label: str, text: str, error: ValueError) -> str:
    """Return pflag's message for upstream's flags, and a plain message for other flags."""
    if flag.group and flag.type.expected:
        return invalid_value(text, f"--{flag.name}", flag.type.expected)
    return f'invalid argument "{text}" for "{label}" flag: {error}'


def invalid_value(text: str, flag: str, expected: str) -> str:
    """Return the message for an invalid value of a flag unknown to upstream."""
    return f'invalid value "{text}" for {flag}: expected {expected}'


_SIMILARITY = 0.7
"""Lower bound of difflib's ratio: below it, suggestions are misleading."""
_LONGEST = 64
"""Characters. Longer words are not misspelt names, and the comparison is quadratic."""


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
    """Return (title, flags) pairs: task groups in the order of their first flag, then the other sections."""
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
