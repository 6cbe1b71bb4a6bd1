"""The errors that end an evaluation without a value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pilothouse.machinery.cel.interpreter.values import type_name


class EvaluationFailed(Exception):
    """The message is cel-go's where it is known. `||` and `&&` may do without the value."""


class EvaluationCancelled(Exception):
    """The evaluation was ended from outside: nothing in the expression can make up for it."""


class CostLimitExceeded(EvaluationCancelled):
    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


def no_such_overload(function: str, arguments: Sequence[Any]) -> EvaluationFailed:
    return EvaluationFailed(f"no such overload: {function}({', '.join(map(type_name, arguments))})")
