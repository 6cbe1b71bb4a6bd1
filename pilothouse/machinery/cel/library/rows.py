"""Rows of the function table: one overload each, with its implementation and its costs.

    row("contains_string", "string -> contains(string) bool", run, cost=…, estimate=…)

The signature of a member function begins with the type of its receiver. Capital letters are type parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from pilothouse.machinery.cel.cost.sizes import ONE_COST, CallCost, Operand
from pilothouse.machinery.cel.front.types import (
    SIMPLE,
    Type,
    list_of,
    map_of,
    opaque,
    optional_of,
    parameter,
    struct,
    type_of,
)

Run: TypeAlias = Callable[..., Any]
RunCost: TypeAlias = Callable[[Sequence[Any], Any], int]
"""(arguments, result) → cost of a call that happened"""
Estimate: TypeAlias = Callable[[list[Operand]], CallCost]
"""operands, the receiver first → the most that a call can cost, without its arguments"""

NAMES = {
    "Authorizer": struct("kubernetes.authorization.Authorizer"),
    "PathCheck": struct("kubernetes.authorization.PathCheck"),
    "GroupCheck": struct("kubernetes.authorization.GroupCheck"),
    "ResourceCheck": struct("kubernetes.authorization.ResourceCheck"),
    "Decision": struct("kubernetes.authorization.Decision"),
    "URL": struct("kubernetes.URL"),
    "Quantity": struct("kubernetes.Quantity"),
    "Semver": struct("kubernetes.Semver"),
    "Format": struct("kubernetes.NamedFormat"),
    "IP": opaque("net.IP"),
    "CIDR": opaque("net.CIDR"),
}
"""Types that only functions make and take."""


def one(args: Sequence[Any], result: Any) -> int:
    return 1


def one_estimated(operands: list[Operand]) -> CallCost:
    return ONE_COST


class Row:
    """One overload."""

    __slots__ = (
        "cost",
        "estimate",
        "function",
        "is_generic",
        "is_member",
        "named_cost",
        "overload",
        "parameters",
        "result",
        "run",
        "since",
    )

    def __init__(self, overload: str, signature: str, run: Run | None) -> None:
        self.overload = overload
        self.function, self.parameters, self.result, self.is_member = parse_signature(signature)
        self.run = run
        """None for operators that the planner compiles itself."""
        self.cost: RunCost = one
        self.named_cost = False
        """Whether the cost applies, too, if the checker could not choose one overload of the function."""
        self.estimate: Estimate = one_estimated
        self.since = 0
        """Minor version of Kubernetes that introduced the overload."""
        self.is_generic = self.result.is_open or any(each.is_open for each in self.parameters)


def row(
    overload: str,
    signature: str,
    run: Run | None = None,
    *,
    cost: RunCost = one,
    named_cost: bool = False,
    estimate: Estimate = one_estimated,
    since: int = 0,
) -> Row:
    made = Row(overload, signature, run)
    made.cost, made.named_cost, made.estimate, made.since = cost, named_cost, estimate, since
    return made


def parse_signature(text: str) -> tuple[str, tuple[Type, ...], Type, bool]:
    """Return the function's name, its parameters with the receiver first, its result, and whether it is a member."""
    receiver, arrow, call = text.rpartition(" -> ")
    opening = call.index("(")
    closing = _closing(call, opening)
    parameters = [parse_type(part) for part in _split(call[opening + 1 : closing])]
    if arrow:
        parameters.insert(0, parse_type(receiver))
    return call[:opening], tuple(parameters), parse_type(call[closing + 1 :].strip()), bool(arrow)


def _closing(text: str, opening: int) -> int:
    depth = 0
    for index in range(opening, len(text)):
        depth += (text[index] == "(") - (text[index] == ")")
        if depth == 0:
            return index
    raise ValueError(text)


def _split(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for index, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    rest = text[start:].strip()
    return [*parts, rest] if rest else parts


@lru_cache(maxsize=256)
def parse_type(text: str) -> Type:
    name, opening, inner = text.partition("(")
    if opening:
        parts = [parse_type(part) for part in _split(inner[:-1])]
        makers: dict[str, Callable[..., Type]] = {
            "list": list_of,
            "map": map_of,
            "optional_type": optional_of,
            "type": type_of,
        }
        return makers[name](*parts)
    if name in SIMPLE:
        return SIMPLE[name]
    if name in NAMES:
        return NAMES[name]
    return parameter(name) if len(name) == 1 and name.isupper() else struct(name)
