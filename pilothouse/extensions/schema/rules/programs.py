"""A rule that can be run, and what its failures are called."""

from __future__ import annotations

from typing import Any

from pilothouse.extensions.schema.field_paths import InvalidFieldPath, find_field
from pilothouse.extensions.schema.rules.budget import Budget
from pilothouse.extensions.schema.rules.environments import compiled_rule
from pilothouse.extensions.schema.structural import Structural
from pilothouse.machinery.cel.interpreter.values import NONE, Optional
from pilothouse.machinery.cel.program import EvaluationOutcome
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

_LONGEST_MESSAGE = 5 * 1024


@dataclass(frozen=True, slots=True)
class Bindings:
    """The variables of a rule, already as CEL values."""

    value: Any
    old: Any = None
    has_old: bool = False


@dataclass(frozen=True, slots=True)
class RuleFaults:
    """Why a rule and its message's expression do not compile for the type that they are about; empty if they do."""

    rule: str = ""
    message: str = ""


class RuleProgram:
    """One rule with its message. A rule with a fault is there only to say so.

    Raises CompilationFailed when it is made without a fault and does not compile for any type.
    """

    def __init__(self, rule: Json, schema: Structural, faults: RuleFaults) -> None:
        self.rule = rule
        self.text = str(rule.get("rule") or "").strip()
        self.fault = faults.rule
        self.optional_old = bool(rule.get("optionalOldSelf"))
        # Nobody runs a rule with a fault.
        compiled = compiled_rule("false" if self.fault else self.text)
        self.uses_old = compiled.uses_old
        self._program = compiled.program
        self.message_expression = str(rule.get("messageExpression") or "")
        expression = "" if faults.message else self.message_expression.strip()
        self._message = compiled_rule(expression).program if expression else None
        self.field_path = _normalized(rule.get("fieldPath") or "", schema)

    @property
    def name(self) -> str:
        """How failures of evaluation speak of the rule."""
        return str(self.rule.get("message") or "").strip() or self.text

    def run(self, bindings: Bindings, budget: Budget) -> EvaluationOutcome:
        old = bindings.old
        if self.optional_old:
            old = Optional(True, bindings.old) if bindings.has_old else NONE
        return budget.run(self._program, {"self": bindings.value, "oldSelf": old})

    def run_message(self, bindings: Bindings, budget: Budget) -> EvaluationOutcome | None:
        """None for a rule without such an expression."""
        if self._message is None:
            return None
        return budget.run(self._message, {"self": bindings.value, "oldSelf": bindings.old})

    def message(self, expressed: EvaluationOutcome | None) -> str:
        """Return the message about a value for which the rule does not hold. An expression that fails, or whose value
        cannot be a message, counts for nothing.
        """
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
