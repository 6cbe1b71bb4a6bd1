"""Comprehensions: what all(), exists(), map(), filter() and cel.bind() are made into.

The accumulator of a loop that builds a list or a map is changed in place. Nothing else can see it: its name cannot be
written in an expression.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pilothouse.machinery.cel.interpreter.errors import EvaluationFailed
from pilothouse.machinery.cel.interpreter.frame import DeferredFailure, ExecutionFrame, Step, attempted
from pilothouse.machinery.cel.interpreter.operands import go_type
from pilothouse.machinery.cel.interpreter.values import MISSING, find_entry, from_key, shown, to_key
from pilothouse.machinery.checkpoints import checkpoint
from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Loop:
    variable: str
    second_variable: str
    over: Step
    accumulator: str
    start: Step
    condition: Step
    step: Step
    result: Step
    binding: bool
    """Whether it is no loop, but a name for a value."""

    def __call__(self, frame: ExecutionFrame) -> Any:
        outer = {name: frame.locals.get(name, MISSING) for name in self._names()}
        try:
            items = [] if self.binding else self._items(self.over(frame))
            frame.locals[self.accumulator] = attempted(self.start, frame)
            for first, second in items:
                if not self._turn(frame, first, second):
                    break
            return self.result(frame)
        finally:
            _restore(frame, outer)

    def _names(self) -> tuple[str, ...]:
        return (self.variable, self.second_variable, self.accumulator)

    def _turn(self, frame: ExecutionFrame, first: Any, second: Any) -> bool:
        """Whether the loop went on."""
        scope = frame.locals
        scope[self.variable] = first
        if self.second_variable:
            scope[self.second_variable] = second
        if attempted(self.condition, frame) is False:
            return False
        frame.spend(0)
        checkpoint()
        scope[self.accumulator] = attempted(self.step, frame)
        return True

    def _items(self, value: Any) -> Iterator[tuple[Any, Any]]:
        if isinstance(value, list):
            return enumerate(value) if self.second_variable else ((each, None) for each in value)
        if type(value) is dict:
            if self.second_variable:
                return ((from_key(key), item) for key, item in value.items())
            return ((from_key(key), None) for key in value)
        if self.second_variable:
            raise EvaluationFailed(f"unsupported comprehension range type: {go_type(value)}")
        raise EvaluationFailed(f"got '{go_type(value)}', expected iterable type")


def _restore(frame: ExecutionFrame, outer: dict[str, Any]) -> None:
    for name, value in outer.items():
        if value is MISSING:
            frame.locals.pop(name, None)
        else:
            frame.locals[name] = value


def local(name: str) -> Step:
    def step(frame: ExecutionFrame) -> Any:
        frame.cost += 1
        value = frame.locals[name]
        if type(value) is DeferredFailure:
            raise value.error
        return value

    return step


def appending(accumulator: Step, addition: Step) -> Step:
    """`@result + [x]`"""

    def step(frame: ExecutionFrame) -> Any:
        items, more = accumulator(frame), addition(frame)
        items += more
        frame.spend(1)
        return items

    return step


def inserting(accumulator: Step, key: Step, value: Step) -> Step:
    """`cel.@mapInsert(@result, key, value)`"""

    def step(frame: ExecutionFrame) -> Any:
        mapping = accumulator(frame)
        _insert(mapping, key(frame), value(frame))
        frame.spend(1)
        return mapping

    return step


def merging(accumulator: Step, addition: Step) -> Step:
    """`cel.@mapInsert(@result, {key: value})`"""

    def step(frame: ExecutionFrame) -> Any:
        mapping = accumulator(frame)
        for key, value in addition(frame).items():
            _insert(mapping, from_key(key), value)
        frame.spend(1)
        return mapping

    return step


def _insert(mapping: dict[Any, Any], key: Any, value: Any) -> None:
    if find_entry(mapping, key) is not MISSING:
        raise EvaluationFailed(f"insert failed: key {shown(key)} already exists")
    mapping[to_key(key)] = value


def not_strictly_false(inner: Step) -> Step:
    def step(frame: ExecutionFrame) -> bool:
        value = attempted(inner, frame)
        frame.spend(1)
        return value is not False

    return step
