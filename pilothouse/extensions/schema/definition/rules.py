"""Validation of rules: declarations, and the types and estimated costs of their expressions.

A rule must have the right type, and its estimated cost on the largest possible object must stay within the limit.
"""

from __future__ import annotations

import re
from dataclasses import field

from pilothouse.extensions.schema.definition.go_form import go_rule
from pilothouse.extensions.schema.definition.structure import unsupported_part
from pilothouse.extensions.schema.field_paths import InvalidFieldPath, find_field
from pilothouse.extensions.schema.metrics import COMPILATION
from pilothouse.extensions.schema.rules.declared import MAX_REQUEST_SIZE, declared_type
from pilothouse.extensions.schema.rules.programs import RuleFaults, TypedEnvironment
from pilothouse.extensions.schema.structural import VALIDATIONS, Structural, structural
from pilothouse.machinery.cel.cost.estimate import estimated_cost
from pilothouse.machinery.cel.cost.sizes import product, total
from pilothouse.machinery.cel.declared import Declared
from pilothouse.machinery.cel.environment import CompilationFailed, Compiled
from pilothouse.machinery.cel.program import Program, ProgramFailed
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import Errors, Path, forbidden, internal, invalid, not_supported, required
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.pattern_format import EMPTY_IF_SPECIFIED_ERROR, LINE_BREAKS_ERROR

_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_LINE_BREAK = re.compile(r"[\n\r]")


def validate_rule_declarations(schema: Json, path: Path) -> Errors:
    """Validate the declaration of a rule without compiling its expressions."""
    with_path = any(rule.get("fieldPath") for rule in schema.get(VALIDATIONS) or [])
    fields = structural(schema) if with_path and not unsupported_part(schema) else None
    for index, rule in enumerate(schema.get(VALIDATIONS) or []):
        at = path.child(VALIDATIONS).index(index)
        text, message = rule.get("rule") or "", rule.get("message") or ""
        if not text.strip():
            yield required(at.child("rule"), "rule is not specified")
        elif message and not message.strip():
            yield invalid(at.child("message"), message, EMPTY_IF_SPECIFIED_ERROR)
        elif _LINE_BREAK.search(message.strip()):
            yield invalid(at.child("message"), message, LINE_BREAKS_ERROR)
        elif _LINE_BREAK.search(text.strip()) and not message.strip():
            yield required(at.child("message"), "message must be specified if rule contains line breaks")
        if rule.get("messageExpression") and not rule["messageExpression"].strip():
            yield required(at.child("messageExpression"), "messageExpression must be non-empty if specified")
        if rule.get("reason") is not None and rule["reason"] not in _REASONS:
            yield not_supported(at.child("reason"), rule["reason"], _REASONS)
        if rule.get("fieldPath"):
            yield from _validate_field_path(rule["fieldPath"], fields, at.child("fieldPath"))


def _validate_field_path(field_path: str, schema: Structural | None, path: Path) -> Errors:
    if not field_path.strip():
        yield invalid(path, field_path, EMPTY_IF_SPECIFIED_ERROR)
    if _LINE_BREAK.search(field_path):
        yield invalid(path, field_path, LINE_BREAKS_ERROR)
    if schema is None:
        return
    try:
        find_field(field_path, schema)
    except InvalidFieldPath:
        yield invalid(path, field_path, "must be a valid path")


_RULE_LIMIT = 10_000_000
_TOTAL_LIMIT = 100_000_000
_MOST_EXPENSIVE = 4
_ADVICE = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength "
    "where arrays, maps, and strings are declared)"
)


@dataclass(frozen=True, slots=True)
class Expense:
    path: Path
    cost: int


@dataclass(slots=True)
class EstimatedCost:
    """The estimated cost of all rules of a definition, with the most expensive rules."""

    limits_each_rule: bool = True
    """False for stored rules, which may exceed the limit for new rules."""
    spent: int = 0
    expensive: list[Expense] = field(default_factory=list)

    def add(self, path: Path, cost: int) -> None:
        self.spent = total(self.spent, cost)
        if cost >= _TOTAL_LIMIT // 100:
            self.expensive.append(Expense(path, cost))
            self.expensive.sort(key=lambda expense: -expense.cost)
            del self.expensive[_MOST_EXPENSIVE:]

    def errors(self, path: Path) -> Errors:
        if self.spent <= _TOTAL_LIMIT:
            return
        for expense in self.expensive:
            reason = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
            yield forbidden(expense.path, reason)
        subject = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        yield forbidden(path, _cost_message(subject, self.spent, _TOTAL_LIMIT))


@dataclass(frozen=True, slots=True)
class _CompiledRule:
    error: str
    cost: int = 0
    uses_old: bool = False


@dataclass(frozen=True, slots=True)
class RulePlace:
    """The position of rules in a schema."""

    schema: Json
    path: Path
    root: bool
    count: int | None
    """Maximum number of the schema's values in an object; None = unlimited."""
    uncorrelatable: Path | None


def validate_expressions(place: RulePlace, estimated: EstimatedCost) -> Errors:
    declared = declared_type(structural(place.schema), root=place.root)
    at = place.path.child(VALIDATIONS)
    if declared is None:
        reason = "failed to construct type information for x-kubernetes-validations rules"
        yield internal(at, f"internal error: {reason}: unable to convert structural schema to CEL declarations")
        return
    with COMPILATION.time():
        compiler = _RuleCompiler(place, declared, estimated)
        for index, rule in enumerate(place.schema[VALIDATIONS]):
            yield from compiler.validate(rule, at.index(index))


class _RuleCompiler:
    """Compiles the rules of one schema."""

    def __init__(self, place: RulePlace, declared: Declared, estimated: EstimatedCost) -> None:
        self._place = place
        self._declared = declared
        self._estimated = estimated
        self._environment = TypedEnvironment(declared)
        # Without limits, the request size and the smallest form of the value bound the count.
        self._count = place.count if place.count is not None else MAX_REQUEST_SIZE // (declared.min_size + 1)

    def validate(self, rule: Json, path: Path) -> Errors:
        compiled = self._compile(rule, "rule", result="bool")
        cost = product(compiled.cost, self._count)
        if cost > _RULE_LIMIT and self._estimated.limits_each_rule:
            yield forbidden(path.child("rule"), _cost_message("estimated rule cost", cost, _RULE_LIMIT))
        self._estimated.add(path.child("rule"), cost)
        if compiled.error:
            yield invalid(path.child("rule"), go_rule(rule), compiled.error)
        elif rule.get("messageExpression"):
            yield from self._validate_message(rule, path.child("messageExpression"))
        uses_old = compiled.uses_old
        if uses_old and self._place.uncorrelatable is not None:
            where = f"the uncorrelatable portion of the schema within {self._place.uncorrelatable}"
            reason = f"oldSelf cannot be used on {where}"
            yield invalid(path.child("rule"), rule["rule"], reason)
        elif not uses_old and rule.get("optionalOldSelf") is not None:
            reason = "may not be set if oldSelf is not used in rule"
            yield invalid(path.child("optionalOldSelf"), rule["optionalOldSelf"], reason)

    def _validate_message(self, rule: Json, path: Path) -> Errors:
        compiled = self._compile(rule, "messageExpression", result="string")
        if compiled.error:
            yield invalid(path, go_rule(rule), compiled.error)
            return
        if compiled.cost > _RULE_LIMIT and self._estimated.limits_each_rule:
            subject = "estimated messageExpression cost"
            yield forbidden(path, _cost_message(subject, compiled.cost, _RULE_LIMIT))
        self._estimated.add(path, compiled.cost)

    def _compile(self, rule: Json, key: str, *, result: str) -> _CompiledRule:
        try:
            compiled = compile_typed(self._environment, rule, key, result=result)
        except UnusableRule as error:
            return _CompiledRule(str(error), uses_old=error.uses_old)
        return _CompiledRule("", estimated_cost(compiled.program, self._declared), compiled.program.uses("oldSelf"))


def judge_rules(schema: Structural, declared: Declared) -> list[RuleFaults]:
    """Return the faults of each rule's expressions for the declared type."""
    environment = TypedEnvironment(declared)
    return [
        RuleFaults(
            _fault(environment, rule, "rule", result="bool"),
            _fault(environment, rule, "messageExpression", result="string"),
        )
        for rule in schema.rules
    ]


def _fault(environment: TypedEnvironment, rule: Json, key: str, *, result: str) -> str:
    if not str(rule.get(key) or "").strip():
        return ""
    try:
        compile_typed(environment, rule, key, result=result)
    except UnusableRule as error:
        return str(error)
    return ""


class UnusableRule(Exception):
    """An expression does not compile, has the wrong type, or has a failing constant."""

    def __init__(self, message: str, *, uses_old: bool = False) -> None:
        super().__init__(message)
        self.uses_old = uses_old


def compile_typed(environment: TypedEnvironment, rule: Json, key: str, *, result: str) -> Compiled:
    """Compile an expression of the rule. Raises UnusableRule, also for another type than `result`."""
    subject = "" if key == "rule" else "messageExpression "
    try:
        compiled = environment.compile(rule[key], optional_old=bool(rule.get("optionalOldSelf")))
    except CompilationFailed as error:
        raise UnusableRule(f"{subject}compilation failed: {error}") from None
    if compiled.type != result:
        raise UnusableRule(f"{subject or 'cel expression '}must evaluate to a {result}")
    try:
        Program(compiled.program)
    except ProgramFailed as error:
        what = f"{subject}instantiation failed" if subject else "program instantiation failed"
        raise UnusableRule(f"{what}: {error}", uses_old=compiled.program.uses("oldSelf")) from None
    return compiled


def _cost_message(subject: str, cost: int, limit: int) -> str:
    factor = cost / limit
    if factor > 100:
        times = "more than 100x"
    else:
        times = f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    return f"{subject} exceeds budget by factor of {times} {_ADVICE}"
