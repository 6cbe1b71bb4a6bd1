"""Finding the overload that takes values of the types at hand."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pilothouse.machinery.cel.authorizer import AccessDecision, AuthorizerValue, GroupCheck, PathCheck, ResourceCheck
from pilothouse.machinery.cel.front.types import Type
from pilothouse.machinery.cel.interpreter.errors import EvaluationFailed
from pilothouse.machinery.cel.interpreter.values import Duration, Optional, Timestamp, UInt, no_such_overload
from pilothouse.machinery.cel.library.formats import Format
from pilothouse.machinery.cel.library.network import CIDR, IP
from pilothouse.machinery.cel.library.quantities import Quantity
from pilothouse.machinery.cel.library.rows import Row, Run
from pilothouse.machinery.cel.library.semver import Semver
from pilothouse.machinery.cel.library.table import functions
from pilothouse.machinery.cel.library.urls import URL

_ANY = object
_CLASSES: dict[str, type] = {
    "bool": bool,
    "int": int,
    "uint": UInt,
    "double": float,
    "string": str,
    "bytes": bytes,
    "list": list,
    "map": dict,
    "duration": Duration,
    "timestamp": Timestamp,
    "optional_type": Optional,
    **{each.cel_type: each for each in (IP, CIDR, URL, Quantity, Semver, Format)},
    **{each.cel_type: each for each in (AuthorizerValue, PathCheck, GroupCheck, ResourceCheck, AccessDecision)},
}
_OPERAND_FIRST = frozenset(("size", "sort", "@sortByAssociatedKeys", "matches"))
"""Functions that, like operators, first ask their operand whether it has the operation at all."""
_TERSE = frozenset(("contains", "startsWith", "endsWith", "!_", "@in"))
_RECEIVERS = (str, Duration, Timestamp)
"""Types that answer for themselves that they have no such operation."""


def _class_of(kind: Type) -> type:
    return _CLASSES.get(kind.kind) or _CLASSES.get(kind.name, _ANY)


class Function:
    """All overloads of one name with one number of arguments."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._by_item = False
        self._overloads: list[tuple[tuple[type, ...], Run]] = []
        self._found: dict[tuple[type, ...], Run] = {}
        self._items: list[type] = []
        """Types of the items of a list that comes first, of each overload."""

    def add(self, row: Row, run: Run) -> None:
        self._overloads.append((tuple(map(_class_of, row.parameters)), run))
        first = row.parameters[0] if row.parameters else None
        is_list = first is not None and first.kind == "list"
        self._items.append(_class_of(first.parameters[0]) if first is not None and is_list else _ANY)
        self._by_item = all(each is not _ANY for each in self._items) and self._name not in _OPERAND_FIRST

    def __call__(self, *arguments: Any) -> Any:
        if self._by_item:
            run = self._find_by_item(arguments)
        else:
            types = tuple(map(type, arguments))
            run = self._found.get(types) or self._find(types)
        if run is None:
            raise self._refusal(arguments)
        try:
            return run(*arguments)
        except (ArithmeticError, ValueError) as error:
            raise EvaluationFailed(str(error)) from None

    def _find(self, types: tuple[type, ...]) -> Run | None:
        plain = tuple(list if issubclass(each, list) else each for each in types)
        for parameters, run in self._overloads:
            if all(wanted is _ANY or wanted is given for wanted, given in zip(parameters, plain, strict=True)):
                self._found[types] = run
                return run
        return None

    def _find_by_item(self, arguments: tuple[Any, ...]) -> Run | None:
        """Choose by the type of a list's first item, as upstream does."""
        items = arguments[0]
        if not isinstance(items, list):
            return None
        for item_type, (_, run) in zip(self._items, self._overloads, strict=True):
            if not items or item_type is _ANY or type(items[0]) is item_type:
                return run
        return None

    def _refusal(self, arguments: tuple[Any, ...]) -> EvaluationFailed:
        name = self._name
        if name in _TERSE:
            return EvaluationFailed("no such overload")
        if name[0] not in "_-" and name not in _OPERAND_FIRST:
            return no_such_overload(name, arguments)
        left = list if isinstance(arguments[0], list) else type(arguments[0])
        knows = any(parameters[0] in (_ANY, left) for parameters, _ in self._overloads)
        knows = knows or left in _RECEIVERS
        return EvaluationFailed("no such overload" if knows else f"no such overload: {name}")


@lru_cache(maxsize=1024)
def overload_function(row: Row) -> Function:
    """Return a function with this overload only."""
    function = Function(row.function)
    if row.run is not None:
        function.add(row, row.run)
    return function


@lru_cache(maxsize=1)
def dispatch_table() -> dict[tuple[str, int], Function]:
    """Return the functions by name and number of arguments, the receiver included."""
    table: dict[tuple[str, int], Function] = {}
    for name, rows in functions(patches=True).items():
        for row in rows:
            if row.run is not None:
                function = table.setdefault((name, len(row.parameters)), Function(name))
                function.add(row, row.run)
    return table
