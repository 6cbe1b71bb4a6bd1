"""Checks of values against a schema, compiled once per schema node: objects, lists, alternatives and unique lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import orjson

from pilothouse.extensions.schema import problems, values
from pilothouse.extensions.schema.correlation import Link
from pilothouse.extensions.schema.problems import SchemaProblem, printable
from pilothouse.extensions.schema.structural import Structural
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import Errors, Path, duplicate, invalid
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json, deep_equal


def run_check(check: values.Check, value: Any, *, path: Path, link: Link | None = None) -> Errors:
    """Yield the errors without duplicates. The old value is examined only after errors."""
    findings: list[SchemaProblem] = []
    check(value, "", None, findings)
    if findings and link is not None:
        findings = []
        check_part(check, value, "", link, findings)
    seen: set[str] = set()
    for problem in findings:
        if problem.text not in seen:
            seen.add(problem.text)
            yield problem.field_error(path)


def compile_check(schema: Json) -> values.Check:
    """Compile the check of a schema and its nested schemas."""
    of_type, of_enum, alternatives = (
        values.type_check(schema),
        values.enum_check(schema),
        alternatives_check(schema, compile_check),
    )
    by_type: dict[type, values.Check] = {
        str: values.string_check(schema),
        int: values.number_step(schema),
        float: values.number_step(schema),
        list: items_check(schema, compile_check),
        dict: properties_check(schema, compile_check),
        bool: values.nothing_to_check,
    }

    def check(value: Any, name: str, link: Link | None, findings: list[SchemaProblem]) -> int:
        if isinstance(value, int) and not isinstance(value, bool):
            value = values.as_go_number(value)
        passed = of_type(value, name, link, findings) if of_type else 0
        if value is None:
            of_enum(value, name, link, findings)
            return passed
        if alternatives is not None:
            passed += alternatives(value, name, link, findings)
        passed += by_type[type(value)](value, name, link, findings)
        return passed + of_enum(value, name, link, findings) + 4

    return check


def check_part(check: values.Check, value: Any, name: str, link: Link | None, findings: list[SchemaProblem]) -> int:
    """Run the check, and discard its findings if the part is unchanged."""
    before = len(findings)
    passed = check(value, name, link, findings)
    if len(findings) > before and link is not None and link.is_unchanged():
        del findings[before:]
    return passed


def properties_check(schema: Json, compile: values.Compile) -> values.Check:
    declared = schema.get("properties") or {}
    fields = {name: compile(declared[name]) for name in sorted(declared)}
    additional = schema.get("additionalProperties")
    rest = compile(additional) if isinstance(additional, dict) else None
    required: list[str] = schema.get("required") or []
    most, fewest = schema.get("maxProperties"), schema.get("minProperties")
    if not fields and rest is None and not required and most is None and fewest is None:
        return values.one_passes

    def check(value: Json, name: str, link: Link | None, findings: list[SchemaProblem]) -> int:
        if fewest is not None and len(value) < fewest:
            findings.append(problems.fewer_properties(name, fewest, len(value)))
        if most is not None and len(value) > most:
            findings.append(problems.more_properties(name, most, len(value)))
        passed = 1
        if rest is not None:
            for key in value:
                if key not in fields:
                    before = link.key(key) if link else None
                    passed += check_part(rest, value[key], f"{name}.{key}", before, findings)
        for key, step in fields.items():
            if key in value:
                before = link.key(key) if link and not (not name and key in ("kind", "apiVersion")) else None
                passed += check_part(step, value[key], f"{name}.{key}" if name else key, before, findings)
        findings.extend(problems.missing(f"{name}.{key}") for key in required if key not in value)
        return passed

    return check


def items_check(schema: Json, compile: values.Compile) -> values.Check:
    items = schema.get("items")
    step = compile(items) if isinstance(items, dict) else None
    most, fewest, unique = schema.get("maxItems"), schema.get("minItems"), bool(schema.get("uniqueItems"))
    if step is None and most is None and fewest is None and not unique:
        return values.two_pass

    def check(value: list[Any], name: str, link: Link | None, findings: list[SchemaProblem]) -> int:
        passed = 2
        if step is not None:
            for index, item in enumerate(value):
                before = link.index(index) if link else None
                passed += check_part(step, item, f"{name}[{index}]", before, findings)
        if fewest is not None and len(value) < fewest:
            findings.append(problems.fewer_items(name, fewest, len(value)))
        if most is not None and len(value) > most:
            findings.append(problems.more_items(name, most, len(value)))
        if unique and any(deep_equal(item, other) for index, item in enumerate(value) for other in value[:index]):
            findings.append(problems.repeated_items(name))
        return passed

    return check


@dataclass(frozen=True, slots=True)
class _AlternativeOutcome:
    passed: int
    problems: list[SchemaProblem]


def alternatives_check(schema: Json, compile: values.Compile) -> values.Check | None:
    """Return the check; None for schemas without alternatives."""
    makers: dict[str, Callable[[list[values.Check]], values.Check]] = {
        "anyOf": _any_of,
        "oneOf": _one_of,
        "allOf": _all_of,
    }
    checks = [make([compile(each) for each in schema[key]]) for key, make in makers.items() if schema.get(key)]
    if isinstance(schema.get("not"), dict):
        checks.append(_not(compile(schema["not"])))
    if not checks:
        return None

    def check(value: Any, name: str, link: Link | None, findings: list[SchemaProblem]) -> int:
        return sum(step(value, name, link, findings) for step in checks)

    return check


def _outcome(check: values.Check, value: Any, name: str, link: Link | None) -> _AlternativeOutcome:
    findings: list[SchemaProblem] = []
    passed = check(value, name, link, findings)
    return _AlternativeOutcome(passed, findings)


def _best(outcomes: list[_AlternativeOutcome]) -> _AlternativeOutcome:
    """Return the first outcome with the most passed checks."""
    return max(outcomes, key=lambda outcome: outcome.passed)


def _any_of(checks: list[values.Check]) -> values.Check:
    def check(value: Any, name: str, link: Link | None, findings: list[SchemaProblem]) -> int:
        failed: list[_AlternativeOutcome] = []
        for step in checks:
            outcome = _outcome(step, value, name, link)
            if not outcome.problems:
                return outcome.passed
            failed.append(outcome)
        findings.append(SchemaProblem(f"{quote(name)} must validate at least one schema (anyOf)"))
        findings.extend(_best(failed).problems)
        return _best(failed).passed

    return check


def _one_of(checks: list[values.Check]) -> values.Check:
    def check(value: Any, name: str, link: Link | None, findings: list[SchemaProblem]) -> int:
        outcomes = [_outcome(step, value, name, link) for step in checks]
        fitting = [outcome for outcome in outcomes if not outcome.problems]
        if len(fitting) == 1:
            return fitting[0].passed
        count = f"Found {len(fitting)} valid alternatives" if fitting else "Found none valid"
        findings.append(SchemaProblem(f"{quote(name)} must validate one and only one schema (oneOf). {count}"))
        if fitting:
            return 0
        findings.extend(_best(outcomes).problems)
        return _best(outcomes).passed

    return check


def _all_of(checks: list[values.Check]) -> values.Check:
    def check(value: Any, name: str, link: Link | None, findings: list[SchemaProblem]) -> int:
        outcomes = [_outcome(step, value, name, link) for step in checks]
        for outcome in outcomes:
            findings.extend(outcome.problems)
        failed = sum(bool(outcome.problems) for outcome in outcomes)
        if failed:
            none = ". None validated" if failed == len(checks) else ""
            findings.append(SchemaProblem(f"{quote(name)} must validate all the schemas (allOf){none}"))
        return sum(outcome.passed for outcome in outcomes)

    return check


def _not(step: values.Check) -> values.Check:
    def check(value: Any, name: str, link: Link | None, findings: list[SchemaProblem]) -> int:
        if not _outcome(step, value, name, link).problems:
            findings.append(SchemaProblem(f"{quote(name)} must not validate the schema (not)"))
        return 0

    return check


def validate_list_types(value: Any, schema: Structural, path: Path) -> Errors:
    if not schema.has_unique_lists:
        return
    if isinstance(value, dict):
        if schema.additional is not None:
            for key, child in value.items():
                yield from validate_list_types(child, schema.additional, path.key(key))
        for key, child in value.items():
            if key in schema.properties:
                yield from validate_list_types(child, schema.properties[key], path.child(key))
    elif isinstance(value, list):
        yield from _validate_list(value, schema, path)
        if schema.items is not None:
            for index, item in enumerate(value):
                yield from validate_list_types(item, schema.items, path.index(index))


def _validate_list(value: list[Any], schema: Structural, path: Path) -> Errors:
    if schema.list_type == "set":
        for index in _second_ones(value):
            yield duplicate(path.index(index), printable(value[index]))
    elif schema.list_type == "map":
        yield from _validate_keys(value, schema, path)


def _validate_keys(value: list[Any], schema: Structural, path: Path) -> Errors:
    for index, item in enumerate(value):
        if item is not None and not isinstance(item, dict):
            yield invalid(path.index(index), printable(item), "must be an object for an array of list-type map")
            return
    keys = [{key: item[key] for key in schema.map_keys if key in item} if item else {} for item in value]
    for index in _second_ones(keys):
        yield duplicate(path.index(index), printable(keys[index]))


def _second_ones(items: list[Any]) -> Iterator[int]:
    """Yield the index of each second occurrence; further occurrences are not reported."""
    times: dict[bytes, int] = {}
    for index, item in enumerate(items):
        form = orjson.dumps(item, option=orjson.OPT_SORT_KEYS)
        times[form] = times.get(form, 0) + 1
        if times[form] == 2:
            yield index
