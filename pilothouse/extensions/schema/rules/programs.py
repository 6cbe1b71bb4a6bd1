"""A rule that can be run, and what its failures are called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pilothouse.extensions.schema.field_paths import InvalidFieldPath, find_field
from pilothouse.extensions.schema.rules.environments import compiled_rule, evaluate_rule
from pilothouse.extensions.schema.structural import Structural
from pilothouse.machinery.cel.interpreter.errors import EvaluationFailed
from pilothouse.machinery.cel.syntax import SyntaxTree
from pilothouse.machinery.objects import Json

_LONGEST_MESSAGE = 5 * 1024


@dataclass(frozen=True, slots=True)
class Bindings:
    """What a rule sees, already as CEL values."""

    value: Any
    old: Any = None
    has_old: bool = False


class RuleProgram:
    """One rule with its message. Raises CompilationFailed when it is made."""

    def __init__(self, rule: Json, schema: Structural) -> None:
        self.rule = rule
        self.text = str(rule.get("rule") or "").strip()
        self.optional_old = bool(rule.get("optionalOldSelf"))
        compiled = compiled_rule(self.text)
        self.uses_old = SyntaxTree(compiled).uses("oldSelf")
        self._program = _with_optional_old(self.text) if self.optional_old and self.uses_old else compiled
        expression = str(rule.get("messageExpression") or "").strip()
        self._message = compiled_rule(expression) if expression else None
        self.field_path = _normalized(rule.get("fieldPath") or "", schema)

    @property
    def name(self) -> str:
        """How failures of evaluation speak of the rule."""
        return str(self.rule.get("message") or "").strip() or self.text

    def holds(self, bindings: Bindings) -> bool:
        """Raises EvaluationFailed."""
        if self.optional_old:
            data = {"self": bindings.value, "hasOldSelf": bindings.has_old, "oldSelfValue": bindings.old}
        else:
            data = {"self": bindings.value, "oldSelf": bindings.old}
        return evaluate_rule(self._program, data) is True

    def message(self, bindings: Bindings) -> str:
        """What the rule says about a value that it does not hold for."""
        if self._message is not None and (said := self._expressed(bindings)):
            return said
        message = str(self.rule.get("message") or "")
        return message.strip() if message else f"failed rule: {self.text}"

    def _expressed(self, bindings: Bindings) -> str:
        """Empty when the expression fails, or says something that cannot be a message."""
        try:
            said = evaluate_rule(self._message, {"self": bindings.value, "oldSelf": bindings.old})
        except EvaluationFailed:
            return ""
        text = said.strip() if isinstance(said, str) else ""
        return "" if "\n" in text or "\r" in text or len(text.encode()) > _LONGEST_MESSAGE else text


def _with_optional_old(text: str) -> Any:
    """Binds oldSelf to an optional, which cannot be handed over from outside."""
    old = "hasOldSelf ? optional.of(oldSelfValue) : optional.none()"
    return compiled_rule(f"cel.bind(oldSelf, {old}, {text}\n)")


def _normalized(field_path: str, schema: Structural) -> str:
    try:
        return find_field(field_path, schema).path.text if field_path else ""
    except InvalidFieldPath:
        return ""
