"""Flags declared where their values live: a section of options is a frozen dataclass, each field one flag.

@dataclass(frozen=True)
class EtcdOptions:
    servers: tuple[str, ...] = flag("etcd-servers", STRINGS, (), "List of etcd servers to connect with.")
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
    """Task group in the help, for flags that upstream does not have; empty for upstream's flags."""
    details: Callable[[], str] | None = None
    """Further help for the reference page, where computing it would slow down --help."""

    def shown(self, value: Any) -> str:
        """Return the value as text. Texts are as they are, where the help would quote them; a secret is never shown."""
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
    """Declare the flag that sets a dataclass field. The value of a secret flag is never shown."""
    declared = Flag(name, type, default, help, shorthand, secret, group, details)
    value: Any = field(default_factory=lambda: default, metadata={"flag": declared})
    return value  # type: ignore[no-any-return]  # dataclass() turns it into the default


def flags_of(section: type[Any]) -> list[Flag]:
    return [item.metadata["flag"] for item in fields(section) if "flag" in item.metadata]


def shown_values(section: Any) -> dict[str, str]:
    """The values of a section's flags by their names, as `Flag.shown` has them."""
    declared = [
        (item.metadata["flag"], getattr(section, item.name)) for item in fields(section) if "flag" in item.metadata
    ]
    return {flag.name: flag.shown(value) for flag, value in declared}


S = TypeVar("S")


def build(section: type[S], values: dict[str, Any]) -> S:
    """The section with the values that were given, by flag name, and defaults for the rest."""
    declared: Iterable[Any] = fields(section)  # type: ignore[arg-type]
    names = {item.metadata["flag"].name: item.name for item in declared if "flag" in item.metadata}
    return section(**{names[name]: value for name, value in values.items() if name in names})


_NANOSECONDS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class FlagType(Generic[T]):
    """`parse` raises ValueError with the message that Go would give."""

    name: str
    """As the help shows it; empty for booleans, which alone may stand without a value."""
    parse: Callable[[str], T]
    merge: Callable[[T, T], T] | None = None
    """Joins what a repeated flag gave before with what it gives now; without it the last one wins."""
    show: Callable[[T], str] = str
    expected: str = ""
    """The accepted values in plain words, for messages about flags that upstream does not have."""


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
