"""The flags of `pilothouse serve` as keywords: `authorization_mode="RBAC"` is `--authorization-mode=RBAC`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeAlias

Flag: TypeAlias = str | int | float | bool | Path | Iterable[str]
"""A text, a number, yes or no, a path, or a list whose items are joined by commas."""
DEFAULTS: dict[str, Flag] = {"secure_port": 0, "bind_address": "127.0.0.1"}
"""The flags of a test that does not say otherwise: any free port of this machine."""


def command_line(flags: Mapping[str, Flag]) -> list[str]:
    """Return the arguments that say the same. A name may end in `_` where it would be a word of Python's."""
    return [f"--{name.rstrip('_').replace('_', '-')}={_text(value)}" for name, value in flags.items()]


def _text(value: Flag) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (str, int, float, Path)):
        return str(value)
    return ",".join(value)
