"""Matchers of selectors with very many requirements: the time of a match grows with the labels, not with the selector.

    a!=1,a!=2,b in (x,y),b in (y,z)   →   a: not 1, not 2     b: exactly y

A selector may be a megabyte long, and every event of a watch is matched. All requirements on one key become one
constraint, and the object's own labels or fields look their constraint up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

FEW: Final = 16
"""Requirements that are as well met one by one."""


class Constraint:
    """Everything that a selector requires of one key."""

    __slots__ = ("absent", "allowed", "bounds", "denied", "present")

    def __init__(self) -> None:
        self.present = self.absent = False
        """Whether the key must be there, or must not."""
        self.allowed: frozenset[str] | None = None
        self.denied: set[str] = set()
        self.bounds: dict[int, tuple[int, Callable[[str], bool]]] = {}
        """By sign (1: greater than, -1: less than) the tightest bound times its sign, and its test."""

    def allow(self, values: frozenset[str]) -> None:
        self.allowed = values if self.allowed is None else self.allowed & values

    def bound(self, sign: int, limit: int, is_met: Callable[[str], bool]) -> None:
        if sign not in self.bounds or sign * limit > self.bounds[sign][0]:
            self.bounds[sign] = (sign * limit, is_met)

    @property
    def needs_presence(self) -> bool:
        return self.present or self.allowed is not None or bool(self.bounds)

    def is_met(self, value: str) -> bool:
        return (
            not self.absent
            and (self.allowed is None or value in self.allowed)
            and value not in self.denied
            and all(is_met(value) for _, is_met in self.bounds.values())
        )


def merged(
    constraints: Mapping[str, Constraint], *, is_met_by_absence: Callable[[Constraint], bool]
) -> Callable[[Mapping[str, str]], bool]:
    """Return a matcher for all constraints, by key."""
    needed = frozenset(key for key, constraint in constraints.items() if not is_met_by_absence(constraint))

    def matches(values: Mapping[str, str]) -> bool:
        missing = len(needed)
        for key, value in values.items():
            if (constraint := constraints.get(key)) is None:
                continue
            if not constraint.is_met(value):
                return False
            missing -= key in needed
        return not missing

    return matches
