"""Evaluation of rules: every part of an object is checked by the rules of its schema, parents first.

A transition rule runs only if an old value exists. Violations in unchanged parts are tolerated, except those of
transition rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import Any, TypeAlias

from pilothouse.extensions.schema.correlation import Link
from pilothouse.extensions.schema.metrics import COMPILATION, EVALUATION
from pilothouse.extensions.schema.problems import printable
from pilothouse.extensions.schema.rules.declared import declared_type
from pilothouse.extensions.schema.rules.programs import (
    OUT_OF_BUDGET,
    Bindings,
    Budget,
    RuleFaults,
    RuleProgram,
    TypedEnvironment,
)
from pilothouse.extensions.schema.rules.values import Conversion, conversion
from pilothouse.extensions.schema.structural import Structural
from pilothouse.machinery.cel.declared import Declared
from pilothouse.machinery.cel.interpreter.errors import CostLimitExceeded
from pilothouse.machinery.cel.names import escaped
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import OMIT_VALUE, Errors, ErrorType, FieldError, Path, invalid
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json

Judge: TypeAlias = Callable[[Structural, Declared], Sequence[RuleFaults]]
"""(schema, CEL type) → faults of each rule."""

_REASONS = {
    "FieldValueForbidden": ErrorType.FORBIDDEN,
    "FieldValueRequired": ErrorType.REQUIRED,
    "FieldValueDuplicate": ErrorType.DUPLICATE,
}


@dataclass(frozen=True, slots=True)
class _Trail:
    """Old value of a value, or of its nearest ancestor with an old value."""

    link: Link | None = None
    ancestor: Link | None = None

    def key(self, name: str) -> _Trail:
        if self.link is None:
            return self
        if self.ancestor is None and name in ("apiVersion", "kind"):
            return _Trail()
        return _Trail(self.link.key(name), self.link)

    def index(self, position: int) -> _Trail:
        return self if self.link is None else _Trail(self.link.index(position), self.link)

    def is_unchanged(self) -> bool:
        nearest = self.link or self.ancestor
        return nearest is not None and nearest.is_unchanged()


@dataclass(frozen=True, slots=True)
class RuleRun:
    """Evaluation of all rules on one object: cost budget and tolerated errors."""

    budget: Budget = field(default_factory=Budget)
    tolerated: list[FieldError] = field(default_factory=list)
    """Violations in unchanged parts."""


@dataclass(slots=True)
class RuleNode:
    """Rules of a schema and its nested schemas."""

    schema: Structural
    convert: Conversion
    programs: list[RuleProgram] = field(default_factory=list)
    fault: str = ""
    """Reason why no program can run; empty if the programs can run."""
    properties: dict[str, RuleNode] = field(default_factory=dict)
    additional: RuleNode | None = None
    items: RuleNode | None = None

    def validate(self, value: Any, old: Any, path: Path, trail: _Trail, run: RuleRun) -> Errors:
        with EVALUATION.time():
            yield from self._validate(value, old, path, trail, run)

    def _validate(self, value: Any, old: Any, path: Path, trail: _Trail, run: RuleRun) -> Errors:
        if value is None or run.budget.is_over:
            return
        if self.programs or self.fault:
            yield from _Rules(self, path, trail, run).validate(value, old)
        if isinstance(value, dict):
            yield from self._validate_fields(value, old if isinstance(old, dict) else {}, path, trail, run)
        elif isinstance(value, list) and self.items is not None:
            was = Link(value, old, self.schema)
            for index, item in enumerate(value):
                before = was.index(index)
                known = before.old if before is not None else None
                yield from self.items.validate(item, known, path.index(index), trail.index(index), run)

    def _validate_fields(self, value: Json, old: Json, path: Path, trail: _Trail, run: RuleRun) -> Errors:
        if self.additional is not None:
            for key, child in value.items():
                yield from self.additional.validate(child, old.get(key), path.key(key), trail.key(key), run)
        for key, node in self.properties.items():
            if key in value:
                yield from node.validate(value[key], old.get(key), path.child(key), trail.key(key), run)


@dataclass(frozen=True, slots=True)
class _Rules:
    """Rules of one schema at one place in an object."""

    node: RuleNode
    path: Path
    trail: _Trail
    run: RuleRun

    def validate(self, value: Any, old: Any) -> Errors:
        if self.node.fault:
            yield self._failed(f"rule compiler initialization error: {self.node.fault}")
            return
        if self.run.budget.remaining == 0:
            self.run.budget.end()
            yield self._failed(f"validation failed due to {OUT_OF_BUDGET}")
            return
        convert = self.node.convert
        bindings = Bindings(convert(value), None if old is None else convert(old), old is not None)
        for program in self.node.programs:
            if program.fault:
                yield self._failed(f"rule compile error: {program.fault}")
            elif not (program.uses_old and old is None and not program.optional_old):
                yield from self._validate(program, value, bindings)
            if self.run.budget.is_over:
                return

    def _validate(self, program: RuleProgram, value: Any, bindings: Bindings) -> Errors:
        outcome = program.run(bindings, self.run.budget)
        if self.run.budget.is_over:
            yield self._failed(f"validation failed due to {OUT_OF_BUDGET}")
        elif outcome.error is not None:
            if isinstance(outcome.error, CostLimitExceeded):
                self.run.budget.end()
            yield self._failed(_failure_text(outcome.error, program))
        elif outcome.value is not True:
            error = self._refusal(program, value, bindings)
            if program.uses_old or not self.trail.is_unchanged():
                yield error
            else:
                self.run.tolerated.append(error)

    def _failed(self, reason: str) -> FieldError:
        return invalid(self.path, self.node.schema.type, reason)

    def _refusal(self, program: RuleProgram, value: Any, bindings: Bindings) -> FieldError:
        at = self.path.child(program.field_path) if program.field_path else self.path
        expressed, kind = program.run_message(bindings, self.run.budget), self.node.schema.type
        if self.run.budget.is_over:
            return invalid(at, kind, f"messageExpression evaluation failed due to {OUT_OF_BUDGET}")
        if expressed is not None and isinstance(expressed.error, CostLimitExceeded):
            self.run.budget.end()
            why = "no further validation rules will be run due to call cost exceeds limit for messageExpression: "
            return invalid(at, kind, why + quote(program.message_expression))
        printed = OMIT_VALUE if kind in ("object", "array") else printable(value)
        reason = _REASONS.get(program.rule.get("reason") or "", ErrorType.INVALID)
        detail = "" if reason is ErrorType.DUPLICATE else program.message(expressed)
        return FieldError(reason, str(at), printed, detail)


def _failure_text(error: Exception, program: RuleProgram) -> str:
    reason = str(error)
    if isinstance(error, CostLimitExceeded):
        why = "no further validation rules will be run due to call cost exceeds limit for rule"
        return f"'{reason}': {why}: {program.name}"
    if reason.startswith("no such overload"):
        why = "call arguments did not match a supported operator, function or macro signature for rule"
        return f"'{reason}': {why}: {program.name}"
    return f"{reason} evaluating rule: {program.name}"


def has_rules(schema: Structural | None) -> bool:
    return schema is not None and (bool(schema.rules) or any(map(has_rules, schema.children())))


def count_rules(schema: Structural) -> int:
    return len(schema.rules) + sum(map(count_rules, schema.children()))


def validate_rules(
    node: RuleNode, value: Any, old: Any, path: Path, *, link: Link | None = None, run: RuleRun | None = None
) -> Errors:
    return node.validate(value, old, path, _Trail(link), run or RuleRun())


def rule_node(schema: Structural, *, root: bool, judge: Judge | None = None) -> RuleNode | None:
    """Return the rules of a schema tree; None for a tree without rules. judge: finds faults in the rules; None = the
    rules are valid."""
    if not has_rules(schema):
        return None
    return _node(schema, declared_type(schema, root=root), root, judge)


def _node(schema: Structural, declared: Declared | None, root: bool, judge: Judge | None) -> RuleNode:
    node = RuleNode(schema, conversion(schema, root=root))
    if schema.rules and declared is None:
        node.fault = "failed to convert to declType for CEL validation rules"
    else:
        with COMPILATION.time():
            node.programs = list(_programs(schema, declared, judge))
    element = declared.element if declared is not None else None
    node.items = _element_node(schema.items, element, judge)
    node.additional = _element_node(schema.additional, element, judge)
    node.properties = dict(_properties(schema, declared, judge))
    return node


def _element_node(schema: Structural | None, declared: Declared | None, judge: Judge | None) -> RuleNode | None:
    """`declared`: None if the container's type has no elements, such as an object with items."""
    if schema is None or not has_rules(schema):
        return None
    return _node(schema, declared, schema.embedded_resource, judge)


def _programs(schema: Structural, declared: Declared | None, judge: Judge | None) -> Iterator[RuleProgram]:
    if declared is None or not schema.rules:
        return
    judged: Sequence[RuleFaults] = [RuleFaults()] * len(schema.rules) if judge is None else judge(schema, declared)
    environment = TypedEnvironment(declared)
    for rule, faults in zip(schema.rules, judged, strict=True):
        if str(rule.get("rule") or "").strip():
            yield RuleProgram(rule, schema, faults, environment)


def _properties(schema: Structural, declared: Declared | None, judge: Judge | None) -> Iterator[tuple[str, RuleNode]]:
    """Yield the rules of properties. Rules of fields without a CEL type never run."""
    for name, child in schema.properties.items():
        cel_name = escaped(name)
        if cel_name is not None and (declared is None or cel_name not in declared.fields):
            continue
        below = rule_node(child, root=child.embedded_resource, judge=judge)
        if below is not None:
            yield name, below
