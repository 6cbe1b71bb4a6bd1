"""From a checked tree to closures that evaluate it. Planning is done once for each expression.

Literals of constants, conversions of constants and patterns that are constants are evaluated while planning, as cel-go
does: they cost nothing later, and an error in them is an error of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pilothouse.machinery.cel.front.tree import (
    ACCUMULATOR,
    Call,
    Comprehension,
    Const,
    Ident,
    ListNode,
    MapNode,
    Node,
    Select,
    StructNode,
)
from pilothouse.machinery.cel.interpreter import loops, operands
from pilothouse.machinery.cel.interpreter.dispatch import Function, dispatch_table, overload_function
from pilothouse.machinery.cel.interpreter.errors import EvaluationFailed
from pilothouse.machinery.cel.interpreter.frame import ExecutionFrame, Step
from pilothouse.machinery.cel.interpreter.logic import LAZY, both_sides
from pilothouse.machinery.cel.interpreter.operands import Constant
from pilothouse.machinery.cel.interpreter.values import UInt
from pilothouse.machinery.cel.library.rows import RunCost, one
from pilothouse.machinery.cel.patterns import refusal

_CONVERSIONS = frozenset(("bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"))
_PATTERNS = frozenset(("matches", "find", "findAll"))
_ITEMS = {
    "_[_]": operands.indexing,
    "_[?_]": operands.optional_indexing,
    "_?._": operands.optional_indexing,
}
_BUILDING = frozenset(("_+_", "cel.@mapInsert"))
_VARIABLES = "kubernetes.variables"


class ProgramFailed(Exception):
    """A constant part of an expression cannot be evaluated."""


class Planner:
    def __init__(self) -> None:
        self._scopes: list[str] = []
        """Local variables around the part that is being planned."""
        self._plans: dict[type[Node], Callable[[Any], Step]] = {
            Const: lambda node: Constant(node.value),
            Ident: self._ident,
            Select: self._select,
            Call: self._call,
            ListNode: self._list,
            MapNode: self._map,
            StructNode: self._struct,
            Comprehension: self._loop,
        }

    def plan(self, node: Node) -> Step:
        """Raises ProgramFailed."""
        return self._plans[node.__class__](node)

    def _ident(self, node: Ident) -> Step:
        if node.name in self._scopes:
            return loops.local(node.name)
        assert node.reference is not None
        return self._reference(node, node.reference)

    def _reference(self, node: Node, name: str) -> Step:
        if node.type.kind == "type" and (node.type.parameters or name == "type"):
            inner = node.type.parameters[0].name if node.type.parameters else name
            return operands.type_constant(inner)
        return operands.variable(name)

    def _select(self, node: Select) -> Step:
        if node.reference is not None:
            return self._reference(node, node.reference)
        if node.operand.type.name == _VARIABLES and not node.test_only:
            return operands.composed_variable(node.field)
        operand, cost = self.plan(node.operand), self._cost_of_part(node.operand)
        if node.test_only:
            return operands.presence(operand, node.key, cost)
        return operands.selection(operand, node.key, cost)

    @staticmethod
    def _cost_of_part(operand: Node) -> int:
        return 1 if _is_attribute(operand) else 2

    def _call(self, node: Call) -> Step:
        arguments = node.args if node.target is None else [node.target, *node.args]
        if node.function in _BUILDING and (built := self._building(node, arguments)) is not None:
            return built
        steps = [self.plan(argument) for argument in arguments]
        if node.function in _ITEMS:
            if type(steps[1]) is Constant and not operands.is_qualifier(steps[1].value):
                raise ProgramFailed(f"invalid qualifier type: {operands.go_type(steps[1].value)}")
            key = _resolved(arguments[1], steps[1])
            return _ITEMS[node.function](steps[0], key, self._cost_of_part(arguments[0]))
        if node.function == "_?_:_":
            steps = [steps[0], _resolved(arguments[1], steps[1]), _resolved(arguments[2], steps[2])]
        if node.function in LAZY:
            return LAZY[node.function](*steps)
        return self._eager(node, steps)

    def _building(self, node: Call, arguments: list[Node]) -> Step | None:
        """Add to the list or map that a comprehension builds."""
        first = arguments[0]
        if type(first) is not Ident or first.name != ACCUMULATOR or first.type.kind not in ("list", "map"):
            return None
        steps = [self.plan(argument) for argument in arguments]
        if node.function == "_+_":
            return loops.appending(*steps)
        return loops.inserting(*steps) if len(steps) == 3 else loops.merging(*steps)

    def _eager(self, node: Call, steps: list[Step]) -> Step:
        function, overloads = node.function, node.overloads
        if len(overloads) == 1 and overloads[0].run is not None and not _is_polymorphic(function):
            run = overload_function(overloads[0])
        else:
            run = dispatch_table().get((function, len(steps))) or Function(function)
        if function in _CONVERSIONS and len(steps) == 1 and type(steps[0]) is Constant:
            return _folded(run, steps[0])
        if function in _PATTERNS and len(steps) > 1 and type(steps[1]) is Constant:
            _check_pattern(steps[1].value)
        if function == "@in" and len(overloads) == 1 and overloads[0].overload == "in_list":
            looked_up = _lookup(steps)
            if looked_up is not None:
                return looked_up
        price: RunCost = one
        if len(overloads) == 1 or overloads[-1].named_cost:
            price = overloads[-1].cost
        return _called(function, run, steps, price)

    def _list(self, node: ListNode) -> Step:
        steps = [self.plan(each) for each in node.elements]
        if all(type(step) is Constant for step in steps) and not node.optional:
            return Constant([step.value for step in steps])  # type: ignore[attr-defined]
        return operands.list_of([(step, index in node.optional) for index, step in enumerate(steps)])

    def _map(self, node: MapNode) -> Step:
        pairs = [(self.plan(entry.key), self.plan(entry.value), entry.optional) for entry in node.entries]
        step = operands.map_of(pairs)
        if all(type(key) is Constant and type(value) is Constant and not optional for key, value, optional in pairs):
            try:
                return Constant(step(ExecutionFrame({}, 1 << 62)))
            except EvaluationFailed:
                return step
        return step

    def _struct(self, node: StructNode) -> Step:
        return operands.struct_of(node.name, [(each.key, self.plan(each.value), each.optional) for each in node.fields])

    def _start(self, node: Comprehension) -> Step:
        """A literal costs nothing, but the list or map that a loop builds on must be new each time."""
        start = node.start
        if not node.is_binding:
            if type(start) is ListNode and not start.elements:
                return lambda frame: []
            if type(start) is MapNode and not start.entries:
                return lambda frame: {}
        return self.plan(start)

    def _loop(self, node: Comprehension) -> Step:
        over, start = self.plan(node.over), self._start(node)
        self._scopes.append(node.accumulator)
        result = self.plan(node.result)
        variables = [name for name in (node.variable, node.variable2) if name]
        self._scopes += variables
        condition, step = self.plan(node.condition), self.plan(node.step)
        del self._scopes[len(self._scopes) - len(variables) - 1 :]
        return loops.Loop(
            variable=node.variable,
            second_variable=node.variable2,
            over=over,
            accumulator=node.accumulator,
            start=start,
            condition=condition,
            step=step,
            result=result,
            binding=node.is_binding,
        )


def _is_polymorphic(function: str) -> bool:
    """Whether upstream has one implementation for all overloads, which goes by values and not by declared types."""
    return function[0] in "_-!@" or function in ("size", "sort", "matches", "type", "dyn")


def _is_attribute(node: Node) -> bool:
    """Whether the part is a variable, or selected from one."""
    if type(node) is Ident:
        return node.type.kind != "type"
    if type(node) is Select:
        return not node.test_only
    return type(node) is Call and (node.function in _ITEMS or node.function == "_?_:_")


def _resolved(node: Node, step: Step) -> Step:
    """An attribute that another call resolves costs its parts, but not itself."""
    if not _is_attribute(node) or type(step) is Constant or (type(node) is Call and node.function == "_?_:_"):
        return step

    def resolved(frame: ExecutionFrame) -> Any:
        value = step(frame)
        frame.cost -= 1
        return value

    return resolved


def _folded(run: Function, argument: Constant) -> Constant:
    try:
        return Constant(run(argument.value))
    except EvaluationFailed as error:
        raise ProgramFailed(str(error)) from None


def _check_pattern(pattern: Any) -> None:
    if isinstance(pattern, str) and (why := refusal(pattern)):
        raise ProgramFailed(why)


def _lookup(steps: list[Step]) -> Step | None:
    """Membership in a list of constants costs nothing; None for all other lists."""
    items = steps[1]
    if type(items) is not Constant:
        return None
    if not items.value:
        return Constant(False)
    if any(not isinstance(item, bool | int | float | str) for item in items.value):
        return None
    members = {(kind, value) for item in items.value for kind, value in _equal_values(item)}
    item = steps[0]

    def is_member(frame: ExecutionFrame) -> bool:
        value = item(frame)
        try:
            return (value.__class__, value) in members
        except TypeError:  # a list or a map
            return False

    return is_member


def _equal_values(constant: Any) -> Iterator[tuple[type, Any]]:
    """Yield the type and value of everything that equals the constant."""
    yield constant.__class__, constant
    if constant.__class__ is int or constant.__class__ is UInt:
        yield from ((int, int(constant)), (UInt, UInt(constant)), (float, float(constant)))
    elif constant.__class__ is float and constant.is_integer():
        yield from ((int, int(constant)), (UInt, UInt(int(constant))))


def _called(function: str, run: Function, steps: list[Step], price: RunCost) -> Step:
    if function == "lists.range":
        return _range(run, steps[0], price)
    if function in ("sort", "@sortByAssociatedKeys"):
        return _sorted_by(run, steps, price)
    if len(steps) == 1:
        only = steps[0]

        def unary(frame: ExecutionFrame) -> Any:
            try:
                value = only(frame)
            except EvaluationFailed:
                frame.spend(1)  # a call costs something, even if its argument failed
                raise
            return _paid(frame, run, (value,), price)

        return unary
    if len(steps) == 2:
        left, right = steps

        def binary(frame: ExecutionFrame) -> Any:
            return _paid(frame, run, both_sides(left, right, frame), price)

        return binary

    def step(frame: ExecutionFrame) -> Any:
        return _paid(frame, run, [each(frame) for each in steps], price)

    return step


def _paid(frame: ExecutionFrame, run: Function, arguments: Sequence[Any], price: RunCost) -> Any:
    try:
        result = run(*arguments)
    except EvaluationFailed:
        frame.spend(1)
        raise
    frame.spend(price(arguments, result))
    return result


def _sorted_by(run: Function, steps: list[Step], price: RunCost) -> Step:
    """Upstream fails internally if the list or one of the keys cannot be evaluated."""

    def step(frame: ExecutionFrame) -> Any:
        try:
            arguments = [each(frame) for each in steps]
        except EvaluationFailed:
            why = "interface conversion: *types.Err is not traits.Lister: missing method Add"
            raise EvaluationFailed(f"internal error: {why}") from None
        result = run(*arguments)
        frame.spend(price(arguments, result))
        return result

    return step


def _range(run: Function, count: Step, price: RunCost) -> Step:
    """Check the cost of lists.range() before the list is made."""

    def step(frame: ExecutionFrame) -> Any:
        value = count(frame)
        if value.__class__ is int:
            frame.check(value)
        result = run(value)
        frame.spend(price((value,), result))
        return result

    return step
