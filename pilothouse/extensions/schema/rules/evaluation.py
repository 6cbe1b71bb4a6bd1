"""Rules at work: every part of an object is checked by the rules of its schema, parents first.

A rule that compares with the old value runs only where there is one. What a rule finds wrong with a part that did not
change is let pass, unless the rule is about the change.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pilothouse.extensions.schema.correlation import Link
from pilothouse.extensions.schema.problems import printable
from pilothouse.extensions.schema.rules.declared import declared_type
from pilothouse.extensions.schema.rules.programs import Bindings, RuleProgram
from pilothouse.extensions.schema.rules.values import Conversion, conversion
from pilothouse.extensions.schema.structural import Structural
from pilothouse.machinery.cel.declared import Declared
from pilothouse.machinery.cel.interpreter.errors import EvaluationFailed
from pilothouse.machinery.cel.names import escaped
from pilothouse.machinery.field import OMIT_VALUE, Errors, ErrorType, FieldError, Path, invalid
from pilothouse.machinery.objects import Json

_REASONS = {
    "FieldValueForbidden": ErrorType.FORBIDDEN,
    "FieldValueRequired": ErrorType.REQUIRED,
    "FieldValueDuplicate": ErrorType.DUPLICATE,
}


@dataclass(frozen=True, slots=True)
class _Trail:
    """What a value was, or what its nearest ancestor was that can be told from before."""

    link: Link | None = None
    ancestor: Link | None = None
    passed: list[FieldError] | None = None
    """Gathers what is let pass, where somebody wants to know."""

    def key(self, name: str) -> _Trail:
        if self.link is None:
            return self
        if self.ancestor is None and name in ("apiVersion", "kind"):
            return _Trail(passed=self.passed)
        return _Trail(self.link.key(name), self.link, self.passed)

    def index(self, position: int) -> _Trail:
        return self if self.link is None else _Trail(self.link.index(position), self.link, self.passed)

    def is_unchanged(self) -> bool:
        nearest = self.link or self.ancestor
        return nearest is not None and nearest.is_unchanged()


@dataclass(slots=True)
class RuleNode:
    """The rules of one schema and of those below it."""

    schema: Structural
    convert: Conversion
    programs: list[RuleProgram] = field(default_factory=list)
    properties: dict[str, RuleNode] = field(default_factory=dict)
    additional: RuleNode | None = None
    items: RuleNode | None = None

    def validate(self, value: Any, old: Any, path: Path, trail: _Trail) -> Errors:
        if value is None:
            return
        if self.programs:
            yield from self._run(value, old, path, trail)
        if isinstance(value, dict):
            yield from self._validate_fields(value, old if isinstance(old, dict) else {}, path, trail)
        elif isinstance(value, list) and self.items is not None:
            was = Link(value, old, self.schema)
            for index, item in enumerate(value):
                before = was.index(index)
                known = before.old if before is not None else None
                yield from self.items.validate(item, known, path.index(index), trail.index(index))

    def _validate_fields(self, value: Json, old: Json, path: Path, trail: _Trail) -> Errors:
        if self.additional is not None:
            for key, child in value.items():
                yield from self.additional.validate(child, old.get(key), path.key(key), trail.key(key))
        for key, node in self.properties.items():
            if key in value:
                yield from node.validate(value[key], old.get(key), path.child(key), trail.key(key))

    def _run(self, value: Any, old: Any, path: Path, trail: _Trail) -> Errors:
        bindings = Bindings(self.convert(value), None if old is None else self.convert(old), old is not None)
        for program in self.programs:
            if program.uses_old and old is None and not program.optional_old:
                continue
            try:
                if program.holds(bindings):
                    continue
            except EvaluationFailed as failure:
                yield invalid(path, self.schema.type, _failure_text(str(failure), program))
                continue
            if program.uses_old or not trail.is_unchanged():
                yield self._refusal(program, value, bindings, path)
            elif trail.passed is not None:
                trail.passed.append(self._refusal(program, value, bindings, path))

    def _refusal(self, program: RuleProgram, value: Any, bindings: Bindings, path: Path) -> FieldError:
        at = path.child(program.field_path) if program.field_path else path
        shown = OMIT_VALUE if self.schema.type in ("object", "array") else printable(value)
        kind = _REASONS.get(program.rule.get("reason") or "", ErrorType.INVALID)
        detail = "" if kind is ErrorType.DUPLICATE else program.message(bindings)
        return FieldError(kind, str(at), shown, detail)


def _failure_text(reason: str, program: RuleProgram) -> str:
    if reason.startswith("no such overload"):
        why = "call arguments did not match a supported operator, function or macro signature for rule"
        return f"'{reason}': {why}: {program.name}"
    return f"{reason} evaluating rule: {program.name}"


def has_rules(schema: Structural | None) -> bool:
    return schema is not None and (bool(schema.rules) or any(map(has_rules, schema.children())))


def validate_rules(node: RuleNode, value: Any, old: Any, path: Path, link: Link | None = None) -> Errors:
    return node.validate(value, old, path, _Trail(link))


def let_pass(node: RuleNode, value: Any, old: Any, link: Link | None) -> list[FieldError]:
    """What rules find wrong, but with parts that did not change."""
    passed: list[FieldError] = []
    for _ in node.validate(value, old, Path(), _Trail(link, passed=passed)):
        pass
    return passed


def rule_node(schema: Structural, *, root: bool, declared: Declared | None = None) -> RuleNode | None:
    """None where neither the schema nor anything below it has rules."""
    if not has_rules(schema):
        return None
    declared = declared or declared_type(schema, root=root)
    node = RuleNode(schema, conversion(schema, root=root))
    node.programs = [RuleProgram(rule, schema) for rule in schema.rules if str(rule.get("rule") or "").strip()]
    if schema.items is not None:
        node.items = rule_node(schema.items, root=schema.items.embedded_resource)
    if schema.additional is not None:
        node.additional = rule_node(schema.additional, root=schema.additional.embedded_resource)
    node.properties = dict(_properties(schema, declared))
    return node


def _properties(schema: Structural, declared: Declared | None) -> Iterator[tuple[str, RuleNode]]:
    """Fields of which rules cannot see the type have none that run."""
    for name, child in schema.properties.items():
        said = escaped(name)
        if said is not None and (declared is None or said not in declared.fields):
            continue
        below = rule_node(child, root=child.embedded_resource)
        if below is not None:
            yield name, below
