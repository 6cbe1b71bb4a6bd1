"""Requirement of a label selector: key, operator and values; and matchers for many requirements.

`new_requirement` validates as upstream; `Requirement` itself does not.

A selector may have a megabyte, and every watch event is matched. With more than FEW requirements, all requirements on
one key become one Constraint, so that the cost of a match depends on the object's labels, not on the selector:

    a!=1,a!=2,b in (x,y),b in (y,z)   →   a: not 1, not 2     b: exactly y
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from typing import Final, Generic, TypeAlias, TypeVar

from pilothouse.machinery import field
from pilothouse.machinery.checkpoints import checkpoint
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.status_error import PilothouseError, aggregate
from pilothouse.machinery.validation.names import is_qualified_name, is_valid_label_value


class InvalidSelector(PilothouseError, ValueError):
    """The text or object is not a selector; the message is upstream's and suitable for a BadRequest.

    >>> from pilothouse.errors import InvalidSelector
    >>> issubclass(InvalidSelector, ValueError)
    True
    """


Matcher: TypeAlias = Callable[[Mapping[str, str]], bool]
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Conjunction(Generic[R]):
    """Base of selectors: matches what satisfies all requirements."""

    requirements: tuple[R, ...] = ()
    selectable: bool = True
    """False for the selector that matches nothing."""
    matches: Matcher = dataclasses.field(init=False, repr=False, compare=False)
    """Report whether all requirements are satisfied. Compiled once, for speed."""

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))

    @property
    def empty(self) -> bool:
        """Whether the selector matches everything."""
        return self.selectable and not self.requirements


_INT64 = re.compile(r"[+-]?[0-9]+", re.ASCII)


class Operator(Enum):
    IN = "in"
    NOT_IN = "notin"
    EQUALS = "="
    DOUBLE_EQUALS = "=="
    NOT_EQUALS = "!="
    GREATER_THAN = "gt"
    LESS_THAN = "lt"
    EXISTS = "exists"
    DOES_NOT_EXIST = "!"


_EQUAL = (Operator.EQUALS, Operator.DOUBLE_EQUALS)
_EXACT = (*_EQUAL, Operator.NOT_EQUALS)
_SETS = (Operator.IN, Operator.NOT_IN)
_UNARY = (Operator.EXISTS, Operator.DOES_NOT_EXIST)
_SYMBOLS = {Operator.GREATER_THAN: ">", Operator.LESS_THAN: "<"}


@dataclass(frozen=True, slots=True)
class Requirement:
    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        checkpoint()
        if self.operator in _UNARY:
            return f"!{self.key}" if self.operator is Operator.DOES_NOT_EXIST else self.key
        values = ",".join(sorted(self.values))
        if self.operator in _SETS:
            return f"{self.key} {self.operator.value} ({values})"
        return f"{self.key}{_SYMBOLS.get(self.operator, self.operator.value)}{values}"

    @property
    def exact_value(self) -> str | None:
        """Return the value required of the key, if exactly one is allowed."""
        if self.operator in (*_EQUAL, Operator.IN) and len(self.values) == 1:
            return self.values[0]
        return None

    def matcher(self) -> Matcher:
        """Return a function that reports whether labels satisfy this requirement."""
        key, operator, values = self.key, self.operator, frozenset(self.values)
        if (exact := self.exact_value) is not None:
            return lambda labels: labels.get(key) == exact
        if operator is Operator.EXISTS:
            return lambda labels: key in labels
        if operator is Operator.DOES_NOT_EXIST:
            return lambda labels: key not in labels
        if operator in (Operator.NOT_IN, Operator.NOT_EQUALS):
            return lambda labels: labels.get(key) not in values
        if operator in (Operator.GREATER_THAN, Operator.LESS_THAN):
            return _order_matcher(self)
        return lambda labels: labels.get(key) in values


def new_requirement(key: str, operator: Operator, values: Iterable[str] = ()) -> Requirement:
    """Return a valid requirement. Raises InvalidSelector for an invalid key, value or number of values."""
    requirement = Requirement(key, operator, tuple(values))
    if is_qualified_name(key) or not _has_right_values(requirement):
        raise InvalidSelector(aggregate(map(str, _errors(requirement))))
    return requirement


def _has_right_values(requirement: Requirement) -> bool:
    """Report whether `_errors` finds no error in the values, without the cost of messages."""
    operator, values = requirement.operator, requirement.values
    if any(map(is_valid_label_value, values)):
        return False
    if operator in _SETS:
        return bool(values)
    if operator in _UNARY:
        return not values
    return len(values) == 1 and (operator in _EXACT or _int64(values[0]) is not None)


def key_error(key: str, path: field.Path) -> Iterator[field.FieldError]:
    if messages := is_qualified_name(key):
        yield field.invalid(path, key, "; ".join(messages))


def _errors(requirement: Requirement) -> field.Errors:
    path = field.root("values")
    yield from key_error(requirement.key, field.root("key"))
    yield from _count_errors(requirement, path)
    for position, value in enumerate(requirement.values):
        if messages := is_valid_label_value(value):
            yield field.invalid(path.index(position).key(requirement.key), value, "; ".join(messages))


def _count_errors(requirement: Requirement, path: field.Path) -> field.Errors:
    operator, values = requirement.operator, list(requirement.values)
    if operator in _SETS:
        if not values:
            yield field.invalid(path, values, "for 'in', 'notin' operators, values set can't be empty")
    elif operator in _EXACT:
        if len(values) != 1:
            yield field.invalid(path, values, "exact-match compatibility requires one single value")
    elif operator in _UNARY:
        if values:
            yield field.invalid(path, values, "values set must be empty for exists and does not exist")
    else:
        if len(values) != 1:
            yield field.invalid(path, values, "for 'Gt', 'Lt' operators, exactly one value is required")
        for position, value in enumerate(values):
            if _int64(value) is None:
                reason = "for 'Gt', 'Lt' operators, the value must be an integer"
                yield field.invalid(path.index(position), value, reason)


def merged_matcher(requirements: Iterable[Requirement]) -> Matcher:
    """Return a function that reports whether labels satisfy all requirements."""
    constraints: dict[str, Constraint] = {}
    for requirement in requirements:
        constraint = constraints.get(requirement.key) or constraints.setdefault(requirement.key, Constraint())
        _constrain(constraint, requirement)
    return merged(constraints, is_met_by_absence=lambda constraint: not constraint.needs_presence)


def _constrain(constraint: Constraint, requirement: Requirement) -> None:
    checkpoint()
    operator, values = requirement.operator, requirement.values
    if operator is Operator.EXISTS:
        constraint.present = True
    elif operator is Operator.DOES_NOT_EXIST:
        constraint.absent = True
    elif operator in (Operator.NOT_IN, Operator.NOT_EQUALS):
        constraint.denied.update(values)
    elif operator in (Operator.GREATER_THAN, Operator.LESS_THAN):
        key, meets = requirement.key, _order_matcher(requirement)
        sign = 1 if operator is Operator.GREATER_THAN else -1
        constraint.bound(sign, _int64(values[0]) or 0, lambda value: meets({key: value}))
    else:
        constraint.allow(frozenset(values))


def _order_matcher(requirement: Requirement) -> Matcher:
    key, bound = requirement.key, _int64(requirement.values[0])
    sign = 1 if requirement.operator is Operator.GREATER_THAN else -1

    def matches(labels: Mapping[str, str]) -> bool:
        number = _int64(labels.get(key, ""))
        return number is not None and bound is not None and sign * number > sign * bound

    return matches


def _int64(text: str) -> int | None:
    """Parse as Go's ParseInt; None if invalid."""
    # 19 digits hold every int64; longer texts are rejected before the costly conversion.
    if not _INT64.fullmatch(text) or len(text.lstrip("+-0")) > 19:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


FEW: Final = 16
"""Up to this number, requirements are matched one by one."""


class Constraint:
    """All requirements of a selector on one key."""

    __slots__ = ("absent", "allowed", "bounds", "denied", "present")

    def __init__(self) -> None:
        self.present = self.absent = False
        """Whether the key must be present, or must be absent."""
        self.allowed: frozenset[str] | None = None
        self.denied: set[str] = set()
        self.bounds: dict[int, tuple[int, Callable[[str], bool]]] = {}
        """Sign (1: greater than, -1: less than) → (tightest bound × sign, predicate)."""

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
    """Return a matcher for all constraints."""
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
