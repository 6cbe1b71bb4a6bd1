"""Macros: calls that the parser replaces by other expressions, mostly comprehensions.

The nodes that a macro makes stand at the position of its call.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import TypeAlias

from pilothouse.machinery.cel.front.tree import (
    ACCUMULATOR,
    UNUSED,
    Call,
    Comprehension,
    Const,
    Ident,
    ListNode,
    MapNode,
    Node,
    Select,
    copy,
    descendants,
)

_MOST_COPIED = 20_000
"""Nodes of a target that is evaluated twice: each link of a chain of optMap() doubles its size."""
_OLD_ACCUMULATOR = "__result__"


class MacroError(Exception):
    """Arguments that a macro does not accept."""

    def __init__(self, position: int, message: str) -> None:
        super().__init__(message)
        self.position = position


Expand: TypeAlias = Callable[[int, Node, list[Node]], Node]
"""(position, target, arguments) → the expression in place of the call. Raises MacroError."""


def _variable(node: Node, complaint: str) -> str:
    if type(node) is not Ident:
        raise MacroError(node.position, complaint)
    return node.name


def _one_variable(args: list[Node], complaint: str) -> tuple[str, str]:
    name = _variable(args[0], complaint)
    if name in (ACCUMULATOR, _OLD_ACCUMULATOR):
        raise MacroError(args[0].position, "iteration variable overwrites accumulator variable")
    return (name, "")


def _two_variables(args: list[Node]) -> tuple[str, str]:
    first = _variable(args[0], "argument must be a simple name")
    second = _variable(args[1], "argument must be a simple name")
    if first == second:
        raise MacroError(args[1].position, f"duplicate variable name: {first}")
    for node, name in ((args[0], first), (args[1], second)):
        if name in (ACCUMULATOR, _OLD_ACCUMULATOR):
            raise MacroError(node.position, "iteration variable overwrites accumulator variable")
    return (first, second)


def _quantifier(kind: str, *, two: bool = False) -> Expand:
    def expand(at: int, target: Node, args: list[Node]) -> Node:
        variables = _two_variables(args) if two else _one_variable(args, "argument must be a simple name")
        return _QUANTIFIERS[kind](at, target, variables, args[-1])

    return expand


def _all(at: int, target: Node, variables: tuple[str, str], predicate: Node) -> Node:
    return Comprehension(
        at,
        target,
        variables,
        ACCUMULATOR,
        Const(at, True),
        condition=Call(at, "@not_strictly_false", [Ident(at, ACCUMULATOR)]),
        step=Call(at, "_&&_", [Ident(at, ACCUMULATOR), predicate]),
        result=Ident(at, ACCUMULATOR),
    )


def _exists(at: int, target: Node, variables: tuple[str, str], predicate: Node) -> Node:
    return Comprehension(
        at,
        target,
        variables,
        ACCUMULATOR,
        Const(at, False),
        condition=Call(at, "@not_strictly_false", [Call(at, "!_", [Ident(at, ACCUMULATOR)])]),
        step=Call(at, "_||_", [Ident(at, ACCUMULATOR), predicate]),
        result=Ident(at, ACCUMULATOR),
    )


def _exists_one(at: int, target: Node, variables: tuple[str, str], predicate: Node) -> Node:
    more = Call(at, "_+_", [Ident(at, ACCUMULATOR), Const(at, 1)])
    return Comprehension(
        at,
        target,
        variables,
        ACCUMULATOR,
        Const(at, 0),
        condition=Const(at, True),
        step=Call(at, "_?_:_", [predicate, more, Ident(at, ACCUMULATOR)]),
        result=Call(at, "_==_", [Ident(at, ACCUMULATOR), Const(at, 1)]),
    )


_QUANTIFIERS: dict[str, Callable[[int, Node, tuple[str, str], Node], Node]] = {
    "all": _all,
    "exists": _exists,
    "exists_one": _exists_one,
}


def _building(at: int, target: Node, variables: tuple[str, str], start: Node, step: Node, only: Node | None) -> Node:
    """Build a list or map from `start` by `step`, for the items that `only` accepts."""
    if only is not None:
        step = Call(at, "_?_:_", [only, step, Ident(at, ACCUMULATOR)])
    condition, result = Const(at, True), Ident(at, ACCUMULATOR)
    return Comprehension(at, target, variables, ACCUMULATOR, start, condition=condition, step=step, result=result)


def _appended(at: int, item: Node) -> Node:
    return Call(at, "_+_", [Ident(at, ACCUMULATOR), ListNode(at, [item])])


def _map(at: int, target: Node, args: list[Node]) -> Node:
    variables = _one_variable(args, "argument is not an identifier")
    only = args[1] if len(args) == 3 else None
    return _building(at, target, variables, ListNode(at, []), _appended(at, args[-1]), only)


def _filter(at: int, target: Node, args: list[Node]) -> Node:
    variables = _one_variable(args, "argument is not an identifier")
    return _building(at, target, variables, ListNode(at, []), _appended(at, args[0]), args[1])


def _transform_list(at: int, target: Node, args: list[Node]) -> Node:
    variables, only = _two_variables(args), args[2] if len(args) == 4 else None
    return _building(at, target, variables, ListNode(at, []), _appended(at, args[-1]), only)


def _transform_map(at: int, target: Node, args: list[Node]) -> Node:
    variables, only = _two_variables(args), args[2] if len(args) == 4 else None
    step = Call(at, "cel.@mapInsert", [Ident(at, ACCUMULATOR), Ident(at, variables[0]), args[-1]])
    return _building(at, target, variables, MapNode(at, []), step, only)


def _transform_entry(at: int, target: Node, args: list[Node]) -> Node:
    variables, only = _two_variables(args), args[2] if len(args) == 4 else None
    step = Call(at, "cel.@mapInsert", [Ident(at, ACCUMULATOR), args[-1]])
    return _building(at, target, variables, MapNode(at, []), step, only)


def _has(at: int, target: Node, args: list[Node]) -> Node:
    selection = args[0]
    if type(selection) is not Select:
        raise MacroError(selection.position, "invalid argument to has() macro")
    return Select(at, selection.operand, selection.field, test_only=True)


def _bound(at: int, name: str, value: Node, within: Node) -> Node:
    """Evaluate `within` with `name` standing for `value`."""
    condition, step = Const(at, False), Ident(at, name)
    over = ListNode(at, [])
    return Comprehension(at, over, (UNUSED, ""), name, value, condition=condition, step=step, result=within)


def _optional_map(*, flat: bool) -> Expand:
    called = "optFlatMap()" if flat else "optMap()"

    def expand(at: int, target: Node, args: list[Node]) -> Node:
        name = _variable(args[0], f"{called} variable name must be a simple identifier")
        if next(islice(descendants(target), _MOST_COPIED, None), None) is not None:
            raise MacroError(at, f"{called} is nested too deeply")
        has_value = Call(at, "hasValue", [], target)
        computed = _bound(at, name, Call(at, "value", [], copy(target)), args[1])
        if not flat:
            computed = Call(at, "optional.of", [computed])
        return Call(at, "_?_:_", [has_value, computed, Call(at, "optional.none", [])])

    return expand


def _sort_by(at: int, target: Node, args: list[Node]) -> Node:
    name = "@__sortBy_input__"
    if type(target) not in (ListNode, Select, Ident, Comprehension, Call):
        complaint = "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        raise MacroError(target.position, complaint)
    keys = _map(at, Ident(at, name), args)
    return _bound(at, name, target, Call(at, "@sortByAssociatedKeys", [keys], Ident(at, name)))


def _bind(at: int, target: Node, args: list[Node]) -> Node | None:
    """None unless the target is `cel`."""
    if type(target) is not Ident or target.name != "cel":
        return None
    name = _variable(args[0], "cel.bind() variable names must be simple identifiers")
    return _bound(at, name, args[1], args[2])


GLOBAL: dict[tuple[str, int], Expand] = {("has", 1): _has}
MEMBERS: dict[tuple[str, int], Expand] = {
    ("all", 2): _quantifier("all"),
    ("exists", 2): _quantifier("exists"),
    ("exists_one", 2): _quantifier("exists_one"),
    ("map", 2): _map,
    ("map", 3): _map,
    ("filter", 2): _filter,
    ("optMap", 2): _optional_map(flat=False),
    ("optFlatMap", 2): _optional_map(flat=True),
    ("all", 3): _quantifier("all", two=True),
    ("exists", 3): _quantifier("exists", two=True),
    ("existsOne", 3): _quantifier("exists_one", two=True),
    ("exists_one", 3): _quantifier("exists_one", two=True),
    ("transformList", 3): _transform_list,
    ("transformList", 4): _transform_list,
    ("transformMap", 3): _transform_map,
    ("transformMap", 4): _transform_map,
    ("transformMapEntry", 3): _transform_entry,
    ("transformMapEntry", 4): _transform_entry,
}
SORT_BY: dict[tuple[str, int], Expand] = {("sortBy", 2): _sort_by}
"""Belongs to the list library."""
BIND: dict[tuple[str, int], Callable[[int, Node, list[Node]], Node | None]] = {("bind", 3): _bind}
"""Belongs to the bindings library, which only device selectors have."""
