"""Semantic versions in expressions. Build metadata does not count."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from pilothouse.machinery import semver

MARK = "@semver"


def parse(text: str, normalize: bool = False) -> dict[str, Any]:
    parts = semver.parts_of(_normalized(text) if normalize else text)
    if parts is None:
        raise ValueError(f"semver parse error during conversion from string: invalid version {text}")
    return {MARK: list(parts)}


def is_semver(text: str, normalize: bool = False) -> bool:
    return semver.parts_of(_normalized(text) if normalize else text) is not None


def ordinal(value: dict[str, Any]) -> tuple[Any, ...]:
    return semver.ordinal(*value[MARK])


def _normalized(text: str) -> str:
    """`v1` → `1.0.0`, `01.2` → `1.2.0`."""
    core, mark, rest = re.fullmatch(r"v?([^+-]*)([+-]?)(.*)", text, re.DOTALL).groups()  # type: ignore[union-attr]
    numbers = [number.lstrip("0") or "0" for number in core.split(".")] if core else []
    numbers += ["0"] * (3 - len(numbers))
    return ".".join(numbers) + mark + rest


def _part(index: int) -> Callable[[dict[str, Any]], int]:
    return lambda value: int(value[MARK][index])


PARTS: dict[str, Callable[[dict[str, Any]], int]] = {"major": _part(0), "minor": _part(1), "patch": _part(2)}
