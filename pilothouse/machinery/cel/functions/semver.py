"""Semantic versions in expressions. Build metadata does not count."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

MARK = "@semver"

_VERSION = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(?:-((?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)(?:\.(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*))*))?"
    r"(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?",
    re.ASCII,
)


def parse(text: str, normalize: bool = False) -> dict[str, Any]:
    found = _VERSION.fullmatch(_normalized(text) if normalize else text)
    if found is None:
        raise ValueError(f"semver parse error during conversion from string: invalid version {text}")
    return {MARK: [found[1], found[2], found[3], found[4] or ""]}


def is_semver(text: str, normalize: bool = False) -> bool:
    return _VERSION.fullmatch(_normalized(text) if normalize else text) is not None


def ordinal(value: dict[str, Any]) -> tuple[Any, ...]:
    """A release comes after its previews, numbers before words, and fewer parts before more."""
    major, minor, patch, preview = value[MARK]
    parts = tuple(
        (0, int(part), "") if part.isdecimal() else (1, 0, part) for part in (preview.split(".") if preview else [])
    )
    return (int(major), int(minor), int(patch), not preview, parts)


def _normalized(text: str) -> str:
    """`v1` → `1.0.0`, `01.2` → `1.2.0`."""
    core, mark, rest = re.fullmatch(r"v?([^+-]*)([+-]?)(.*)", text, re.DOTALL).groups()  # type: ignore[union-attr]
    numbers = [number.lstrip("0") or "0" for number in core.split(".")] if core else []
    numbers += ["0"] * (3 - len(numbers))
    return ".".join(numbers) + mark + rest


def _part(index: int) -> Callable[[dict[str, Any]], int]:
    return lambda value: int(value[MARK][index])


PARTS: dict[str, Callable[[dict[str, Any]], int]] = {"major": _part(0), "minor": _part(1), "patch": _part(2)}
