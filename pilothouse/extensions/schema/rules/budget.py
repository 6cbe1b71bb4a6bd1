"""The most that all rules of an object may cost together. A rule that would cost more is stopped, and all rules after
it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pilothouse.apiserver.offload import NeedsOffload, is_offloaded
from pilothouse.machinery.cel.interpreter.errors import CostLimitExceeded
from pilothouse.machinery.cel.program import PER_CALL_LIMIT, EvaluationOutcome, Program

RUNTIME_BUDGET = 10_000_000
OUT_OF_BUDGET = "running out of cost budget, no further validation rules will be run"
_INLINE = 20_000
"""Some milliseconds: how long the event loop may be held up."""


class Budget:
    """The cost that the rules of one object may still have. Raises TakesLong where rules prove too dear for where they
    run.
    """

    def __init__(self) -> None:
        self.remaining = RUNTIME_BUDGET
        self._inline = None if is_offloaded() else _INLINE
        """The cost that may still be spent on the event loop; None where nobody waits."""

    @property
    def is_over(self) -> bool:
        return self.remaining < 0

    def run(self, program: Program, variables: Mapping[str, Any]) -> EvaluationOutcome:
        """Return the outcome of the program. When the budget is over, that outcome does not count."""
        outcome = program.run(variables, limit=PER_CALL_LIMIT if self._inline is None else self._inline)
        if self._inline is not None:
            if isinstance(outcome.error, CostLimitExceeded):
                raise NeedsOffload
            self._inline -= outcome.cost
        self.remaining = self.remaining - outcome.cost if outcome.cost <= self.remaining else -1
        return outcome

    def end(self) -> None:
        """No further rule is run."""
        self.remaining = -1
