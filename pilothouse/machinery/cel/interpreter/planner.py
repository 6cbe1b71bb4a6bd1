"""From a checked syntax tree to closures that evaluate it. Planning is done once for each expression."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import chain
from typing import Any

from pilothouse.machinery.cel.interpreter import loops, operands
from pilothouse.machinery.cel.interpreter.collections import collection_functions
from pilothouse.machinery.cel.interpreter.conversions import conversions
from pilothouse.machinery.cel.interpreter.costs import CALL_COSTS
from pilothouse.machinery.cel.interpreter.dispatch import Function, function_table
from pilothouse.machinery.cel.interpreter.folding import RESOLVING, folded, is_looked_up, resolved_by_call
from pilothouse.machinery.cel.interpreter.frame import ExecutionFrame, Step
from pilothouse.machinery.cel.interpreter.kubernetes import kubernetes_functions
from pilothouse.machinery.cel.interpreter.logic import LAZY
from pilothouse.machinery.cel.interpreter.operators import operators
from pilothouse.machinery.cel.interpreter.strings import string_functions
from pilothouse.machinery.cel.interpreter.times import time_functions
from pilothouse.machinery.cel.syntax import ACCUMULATORS, SyntaxTree, is_binding, kind_of


@lru_cache(maxsize=1)
def _functions() -> dict[tuple[str, int], Function]:
    return function_table(
        chain(
            operators(),
            conversions(),
            time_functions(),
            string_functions(),
            collection_functions(),
            kubernetes_functions(),
        )
    )


class Planner:
    def __init__(self, tree: SyntaxTree) -> None:
        self._tree = tree
        self._scopes: list[str] = []
        """Names of the loops around what is being planned."""
        self._plan: dict[str, Callable[[Any], Step]] = {
            "const_expr": lambda e: operands.constant(e.const_expr),
            "ident_expr": self._ident,
            "select_expr": self._select,
            "call_expr": self._call,
            "list_expr": self._list,
            "struct_expr": self._struct,
            "comprehension_expr": self._loop,
        }

    def plan(self, expression: Any) -> Step:
        return folded(expression, self._planned(expression))

    def _planned(self, expression: Any) -> Step:
        return self._plan[kind_of(expression)](expression)

    def _ident(self, e: Any) -> Step:
        name = e.ident_expr.name
        if name in self._scopes:
            return loops.local(name)
        return operands.variable(name, is_type=self._tree.is_type(e))

    def _select(self, e: Any) -> Step:
        name = self._tree.variable(e)
        if name:
            # `authorizer.requestResource` is declared as one name.
            return operands.variable(name)
        select = e.select_expr
        operand = self.plan(select.operand)
        if select.test_only:
            return operands.presence(operand, select.field)
        return operands.selection(operand, select.field)

    def _call(self, e: Any) -> Step:
        call = e.call_expr
        arguments = ([call.target] if call.HasField("target") else []) + list(call.args)
        if build := self._building(call.function, arguments):
            return build
        steps = [self.plan(argument) for argument in arguments]
        if call.function in RESOLVING:
            resolved = [resolved_by_call(argument, step) for argument, step in zip(arguments, steps, strict=True)]
            steps = [steps[0], *resolved[1:]]
        if call.function in LAZY:
            return LAZY[call.function](*steps)
        return self._eager(call.function, steps, is_free=is_looked_up(call.function, arguments))

    def _building(self, function: str, arguments: list[Any]) -> Step | None:
        """Adding to what a loop builds."""
        if function not in ("_+_", "cel.@mapInsert") or kind_of(arguments[0]) != "ident_expr":
            return None
        if arguments[0].ident_expr.name not in ACCUMULATORS:
            return None
        steps = [self.plan(argument) for argument in arguments]
        if function == "_+_":
            return loops.appending(*steps)
        return loops.inserting(*steps) if len(steps) == 3 else loops.merging(*steps)

    def _eager(self, function: str, steps: list[Step], *, is_free: bool) -> Step:
        run = _functions().get((function, len(steps))) or Function(function)
        price = (lambda args, result: 0) if is_free else CALL_COSTS.get(function)

        def step(frame: ExecutionFrame) -> Any:
            arguments = [each(frame) for each in steps]
            if function == "lists.range" and arguments[0].__class__ is int:
                frame.check(arguments[0])  # the list would be made before its cost is known
            result = run(*arguments)
            frame.spend(1 if price is None else price(arguments, result))
            return result

        return step

    def _list(self, e: Any) -> Step:
        optional = set(e.list_expr.optional_indices)
        return operands.list_of([(self.plan(each), i in optional) for i, each in enumerate(e.list_expr.elements)])

    def _struct(self, e: Any) -> Step:
        entries, name = e.struct_expr.entries, e.struct_expr.message_name
        if name:
            fields = [(each.field_key, self.plan(each.value), each.optional_entry) for each in entries]
            return operands.struct_of(name, fields)
        pairs = [(self.plan(each.map_key), self.plan(each.value), each.optional_entry) for each in entries]
        return operands.map_of(pairs)

    def _start(self, loop: Any) -> Step:
        """A constant costs nothing, but what is built on must be new each time."""
        if is_binding(loop):
            return self.plan(loop.accu_init)
        e = loop.accu_init
        made = {"list_expr": list, "struct_expr": dict}.get(kind_of(e))
        if made is None or e.list_expr.elements or e.struct_expr.entries or e.struct_expr.message_name:
            return self._planned(e)
        return lambda frame: made()

    def _loop(self, e: Any) -> Step:
        loop = e.comprehension_expr
        over, start = self.plan(loop.iter_range), self._start(loop)
        self._scopes.append(loop.accu_var)
        result = self.plan(loop.result)
        variables = [name for name in (loop.iter_var, loop.iter_var2) if name]
        self._scopes += variables
        condition, step = self.plan(loop.loop_condition), self.plan(loop.loop_step)
        del self._scopes[len(self._scopes) - len(variables) - 1 :]
        return loops.Loop(
            variable=loop.iter_var,
            second_variable=loop.iter_var2,
            over=over,
            accumulator=loop.accu_var,
            start=start,
            condition=condition,
            step=step,
            result=result,
            binding=is_binding(loop),
        )
