"""Flags declared where their values live: a section of options is a frozen dataclass, each field one flag.

@dataclass(frozen=True)
class EtcdOptions:
    servers: tuple[str, ...] = flag("etcd-servers", STRINGS, (), "List of etcd servers to connect with.")
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
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
