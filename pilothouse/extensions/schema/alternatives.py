"""allOf, anyOf, oneOf and not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pilothouse.extensions.schema.correlation import Link
from pilothouse.extensions.schema.problems import SchemaProblem
from pilothouse.extensions.schema.values import Check, Compile
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json


@dataclass(frozen=True, slots=True)
class _AlternativeOutcome:
    passed: int
    problems: list[SchemaProblem]


def alternatives_check(schema: Json, compile: Compile) -> Check | None:
    """Return the check; None for schemas without alternatives."""
    makers: dict[str, Callable[[list[Check]], Check]] = {"anyOf": _any_of, "oneOf": _one_of, "allOf": _all_of}
    checks = [make([compile(each) for each in schema[key]]) for key, make in makers.items() if schema.get(key)]
    if isinstance(schema.get("not"), dict):
        checks.append(_not(compile(schema["not"])))
    if not checks:
        return None

    def check(value: Any, name: str, link: Link | None, found: list[SchemaProblem]) -> int:
        return sum(step(value, name, link, found) for step in checks)

    return check


def _outcome(check: Check, value: Any, name: str, link: Link | None) -> _AlternativeOutcome:
    found: list[SchemaProblem] = []
    passed = check(value, name, link, found)
    return _AlternativeOutcome(passed, found)


def _best(outcomes: list[_AlternativeOutcome]) -> _AlternativeOutcome:
    """Return the first outcome with the most passed checks."""
    return max(outcomes, key=lambda outcome: outcome.passed)


def _any_of(checks: list[Check]) -> Check:
    def check(value: Any, name: str, link: Link | None, found: list[SchemaProblem]) -> int:
        failed: list[_AlternativeOutcome] = []
        for step in checks:
            outcome = _outcome(step, value, name, link)
            if not outcome.problems:
                return outcome.passed
            failed.append(outcome)
        found.append(SchemaProblem(f"{quote(name)} must validate at least one schema (anyOf)"))
        found.extend(_best(failed).problems)
        return _best(failed).passed

    return check


def _one_of(checks: list[Check]) -> Check:
    def check(value: Any, name: str, link: Link | None, found: list[SchemaProblem]) -> int:
        outcomes = [_outcome(step, value, name, link) for step in checks]
        fitting = [outcome for outcome in outcomes if not outcome.problems]
        if len(fitting) == 1:
            return fitting[0].passed
        count = f"Found {len(fitting)} valid alternatives" if fitting else "Found none valid"
        found.append(SchemaProblem(f"{quote(name)} must validate one and only one schema (oneOf). {count}"))
        if fitting:
            return 0
        found.extend(_best(outcomes).problems)
        return _best(outcomes).passed

    return check


def _all_of(checks: list[Check]) -> Check:
    def check(value: Any, name: str, link: Link | None, found: list[SchemaProblem]) -> int:
        outcomes = [_outcome(step, value, name, link) for step in checks]
        for outcome in outcomes:
            found.extend(outcome.problems)
        failed = sum(bool(outcome.problems) for outcome in outcomes)
        if failed:
            none = ". None validated" if failed == len(checks) else ""
            found.append(SchemaProblem(f"{quote(name)} must validate all the schemas (allOf){none}"))
        return sum(outcome.passed for outcome in outcomes)

    return check


def _not(step: Check) -> Check:
    def check(value: Any, name: str, link: Link | None, found: list[SchemaProblem]) -> int:
        if not _outcome(step, value, name, link).problems:
            found.append(SchemaProblem(f"{quote(name)} must not validate the schema (not)"))
        return 0

    return check
