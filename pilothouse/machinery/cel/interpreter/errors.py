"""The errors that end an evaluation without a value."""

from __future__ import annotations


class EvaluationFailed(Exception):
    """The message is cel-go's. `||` and `&&` may do without the value."""


class EvaluationCancelled(Exception):
    """The evaluation was ended from outside; nothing in the expression can absorb that."""


class CostLimitExceeded(EvaluationCancelled):
    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")
