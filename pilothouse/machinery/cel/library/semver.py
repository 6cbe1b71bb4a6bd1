"""Semantic versions, read with the rules and messages of blang/semver. Build metadata does not count."""

from __future__ import annotations

import re
from typing import Any

from pilothouse.machinery import versions
from pilothouse.machinery.cel.interpreter.errors import EvaluationFailed
from pilothouse.machinery.cel.library import costs
from pilothouse.machinery.cel.library.network import is_reading
from pilothouse.machinery.cel.library.rows import row
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote

_IDENTIFIER = re.compile(r"[0-9A-Za-z-]+", re.ASCII)
_LARGEST = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Semver:
    cel_type = "kubernetes.Semver"

    parts: tuple[str, str, str, str]
    """Major, minor, patch and pre-release."""
    build: str = ""

    def __str__(self) -> str:
        major, minor, patch, preview = self.parts
        suffix = (f"-{preview}" if preview else "") + (f"+{self.build}" if self.build else "")
        return f"{major}.{minor}.{patch}{suffix}"

    @property
    def order(self) -> tuple[Any, ...]:
        """Sort key."""
        return versions.ordinal(*self.parts)

    def cel_equal(self, other: Any) -> bool:
        if type(other) is not Semver:
            raise EvaluationFailed("no such overload")
        return self.order == other.order

    def number(self, index: int) -> int:
        """Return one of the first three parts; numbers beyond 63 bits wrap, as upstream's do."""
        value = int(self.parts[index])
        return value - 2**64 if value >= 2**63 else value


def parse(text: str, normalize: bool = False) -> Semver:
    """Raises EvaluationFailed."""
    text = _normalized(text) if normalize else text
    if not text:
        raise EvaluationFailed("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise EvaluationFailed("No Major.Minor.Patch elements found")
    rest, plus, build = parts[2].partition("+")
    dash_at = parts[2].find("-")
    plus_at = parts[2].find("+")
    has_preview = dash_at >= 0 and (plus_at < 0 or dash_at < plus_at)
    patch, _, preview = rest.partition("-") if has_preview else (rest, "", "")
    major = _number("Major", parts[0])
    minor = _number("Minor", parts[1])
    patch = _number("Patch", patch)
    if has_preview:
        for identifier in preview.split("."):
            _check_preview(identifier)
    if plus:
        for identifier in build.split("."):
            if not identifier:
                raise EvaluationFailed("Build meta data is empty")
            if _IDENTIFIER.fullmatch(identifier) is None:
                raise EvaluationFailed(f"Invalid character(s) found in build meta data {quote(identifier)}")
    return Semver((major, minor, patch, preview), build)


def is_semver(text: str, normalize: bool = False) -> bool:
    return is_reading(lambda each: parse(each, normalize))(text)


def _number(name: str, text: str) -> str:
    if text and not (text.isascii() and text.isdigit()):
        raise EvaluationFailed(f"Invalid character(s) found in {name.lower()} number {quote(text)}")
    if len(text) > 1 and text.startswith("0"):
        raise EvaluationFailed(f"{name} number must not contain leading zeroes {quote(text)}")
    return _unsigned(text)


def _unsigned(text: str) -> str:
    if not text:
        raise EvaluationFailed('strconv.ParseUint: parsing "": invalid syntax')
    if len(text) > 20 or int(text) > _LARGEST:
        raise EvaluationFailed(f"strconv.ParseUint: parsing {quote(text)}: value out of range")
    return text


def _check_preview(identifier: str) -> None:
    if not identifier:
        raise EvaluationFailed("Prerelease is empty")
    if identifier.isascii() and identifier.isdigit():
        if len(identifier) > 1 and identifier.startswith("0"):
            why = "Numeric PreRelease version must not contain leading zeroes"
            raise EvaluationFailed(f"{why} {quote(identifier)}")
        _unsigned(identifier)
    elif _IDENTIFIER.fullmatch(identifier) is None:
        raise EvaluationFailed(f"Invalid character(s) found in prerelease {quote(identifier)}")


def _normalized(text: str) -> str:
    """`v1` → `1.0.0`, `01.2` → `1.2.0`"""
    parts = text.removeprefix("v").split(".", 2)
    for index, part in enumerate(parts):
        if len(part) > 1:
            stripped = part.lstrip("0")
            parts[index] = stripped if stripped[:1] in tuple("0123456789") else f"0{stripped}"
    if len(parts) < 3 and re.search(r"[+-]", parts[-1]):
        raise EvaluationFailed("short version cannot contain PreRelease/Build meta data")
    return ".".join([*parts, *["0"] * (3 - len(parts))])


def _compare(a: Semver, b: Semver) -> int:
    return (a.order > b.order) - (a.order < b.order)


SEMVERS = (
    row(
        "string_to_semver",
        "semver(string) Semver",
        parse,
        cost=costs.traversal,
        named_cost=True,
        estimate=costs.traversal_estimate,
    ),
    row(
        "string_bool_to_semver",
        "semver(string, bool) Semver",
        parse,
        cost=costs.traversal,
        named_cost=True,
        estimate=costs.traversal_estimate,
    ),
    row(
        "is_semver_string",
        "isSemver(string) bool",
        is_semver,
        cost=costs.traversal,
        named_cost=True,
        estimate=costs.traversal_estimate,
    ),
    row(
        "is_semver_string_bool",
        "isSemver(string, bool) bool",
        is_semver,
        cost=costs.traversal,
        named_cost=True,
        estimate=costs.traversal_estimate,
    ),
    row("semver_is_greater_than", "Semver -> isGreaterThan(Semver) bool", lambda a, b: _compare(a, b) > 0),
    row("semver_is_less_than", "Semver -> isLessThan(Semver) bool", lambda a, b: _compare(a, b) < 0),
    row("semver_compare_to", "Semver -> compareTo(Semver) int", _compare),
    row("semver_major", "Semver -> major() int", lambda version: version.number(0)),
    row("semver_minor", "Semver -> minor() int", lambda version: version.number(1)),
    row("semver_patch", "Semver -> patch() int", lambda version: version.number(2)),
)
