"""Flags declared where their values live: a section of options is a frozen dataclass, each field one flag.

@dataclass(frozen=True)
class EtcdOptions:
    servers: tuple[str, ...] = flag("etcd-servers", STRINGS, (), "List of etcd servers to connect with.")
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field, fields
from typing import Any, TypeVar

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.flags.values import FlagType

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
