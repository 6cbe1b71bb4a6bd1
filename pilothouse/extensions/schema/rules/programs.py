"""RuleProgram: an executable rule, its messages, and the cost budget of all rules of an object.

A rule that exceeds the budget is aborted, and all later rules are skipped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pilothouse.apiserver.offload import NeedsOffload, is_offloaded
from pilothouse.extensions.schema.field_paths import InvalidFieldPath, find_field
from pilothouse.extensions.schema.structural import Structural
from pilothouse.machinery.cel.declared import Declared, DeclaredTypes
from pilothouse.machinery.cel.environment import Compiled, Environment
from pilothouse.machinery.cel.front.types import optional_of
from pilothouse.machinery.cel.interpreter.errors import CostLimitExceeded
from pilothouse.machinery.cel.interpreter.values import NONE, Optional
from pilothouse.machinery.cel.library.table import LATEST
from pilothouse.machinery.cel.program import PER_CALL_LIMIT, EvaluationOutcome, Program
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

_LONGEST_MESSAGE = 5 * 1024


@dataclass(frozen=True, slots=True)
class Bindings:
    """Variables of a rule, as CEL values."""

    value: Any
    old: Any = None
    has_old: bool = False


@dataclass(frozen=True, slots=True)
class RuleFaults:
    """Compilation errors of a rule and of its messageExpression; empty for valid expressions."""

    rule: str = ""
    message: str = ""


class RuleProgram:
    """One rule with its message. A rule with a fault only reports the fault.

    Raises CompilationFailed for a rule without a known fault that does not compile.
    """

    def __init__(self, rule: Json, schema: Structural, faults: RuleFaults, environment: TypedEnvironment) -> None:
        self.rule = rule
        self.text = str(rule.get("rule") or "").strip()
        self.fault = faults.rule
        self.optional_old = bool(rule.get("optionalOldSelf"))
        tree = environment.compile(self.text, optional_old=self.optional_old).program if not self.fault else None
        self.uses_old = tree is not None and tree.uses("oldSelf")
        self._program = None if tree is None else Program(tree)
        self.message_expression = str(rule.get("messageExpression") or "")
        expression = "" if faults.message else self.message_expression.strip()
        self._message: Program | None = None
        if expression:
            self._message = Program(environment.compile(expression, optional_old=self.optional_old).program)
        self.field_path = _normalized(rule.get("fieldPath") or "", schema)

    @property
    def name(self) -> str:
        """Name of the rule in evaluation errors."""
        return str(self.rule.get("message") or "").strip() or self.text

    def run(self, bindings: Bindings, budget: Budget) -> EvaluationOutcome:
        assert self._program is not None
        return budget.run(self._program, self._variables(bindings))

    def _variables(self, bindings: Bindings) -> Json:
        old = bindings.old
        if self.optional_old:
            old = Optional(True, bindings.old) if bindings.has_old else NONE
        return {"self": bindings.value, "oldSelf": old}

    def run_message(self, bindings: Bindings, budget: Budget) -> EvaluationOutcome | None:
        """Evaluate the messageExpression; None for a rule without one."""
        if self._message is None:
            return None
        return budget.run(self._message, self._variables(bindings))

    def message(self, expressed: EvaluationOutcome | None) -> str:
        """Return the message of a violated rule. A failed or unusable messageExpression is ignored."""
        said = expressed.value if expressed is not None and expressed.error is None else None
        text = said.strip() if isinstance(said, str) else ""
        if text and "\n" not in text and len(text.encode()) <= _LONGEST_MESSAGE:
            return text
        message = str(self.rule.get("message") or "")
        return message.strip() if message else f"failed rule: {self.text}"


def _normalized(field_path: str, schema: Structural) -> str:
    try:
        return find_field(field_path, schema).path.text if field_path else ""
    except InvalidFieldPath:
        return ""


_SELF = "selfType"


class TypedEnvironment:
    """Compiles expressions on `self` and `oldSelf` of one declared type."""

    def __init__(self, declared: Declared, *, minor: int = LATEST) -> None:
        self._declared = declared
        self._minor = minor
        self._made: dict[bool, Environment] = {}

    def compile(self, expression: str, *, optional_old: bool = False) -> Compiled:
        """Compile an expression. Raises CompilationFailed."""
        environment = self._made.get(optional_old)
        if environment is None:
            types = DeclaredTypes()
            own = types.add(self._declared, _SELF)
            variables = {"self": own, "oldSelf": optional_of(own) if optional_old else own}
            environment = self._made[optional_old] = Environment(variables, types.structs, minor=self._minor)
        return environment.compile(expression)


RUNTIME_BUDGET = 10_000_000
OUT_OF_BUDGET = "running out of cost budget, no further validation rules will be run"
_INLINE = 20_000
"""Cost that may be spent on the event loop: some milliseconds."""


class Budget:
    """Remaining cost of the rules of one object. Raises NeedsOffload if rules are too expensive for the event loop."""

    def __init__(self) -> None:
        self.remaining = RUNTIME_BUDGET
        self._inline = None if is_offloaded() else _INLINE
        """Remaining cost on the event loop; None in a thread."""

    @property
    def is_over(self) -> bool:
        return self.remaining < 0

    def run(self, program: Program, variables: Mapping[str, Any]) -> EvaluationOutcome:
        """Run the program and charge its cost. Ignore the outcome if the budget is exhausted afterwards."""
        outcome = program.run(variables, limit=PER_CALL_LIMIT if self._inline is None else self._inline)
        if self._inline is not None:
            if isinstance(outcome.error, CostLimitExceeded):
                raise NeedsOffload
            self._inline -= outcome.cost
        self.remaining = self.remaining - outcome.cost if outcome.cost <= self.remaining else -1
        return outcome

    def end(self) -> None:
        """Exhaust the budget: no further rule runs."""
        self.remaining = -1
