"""Conformance tests of the CEL specification.

`conformance.json` has the expressions and expected results of cel-spec's simple tests. Left out are tests of protobuf
messages and enums, which kube-apiserver does not declare, and of libraries that it does not offer (math, encoders,
blocks).

Some tests expect what kube-apiserver's environment excludes. They are kept with the reason, and must fail.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pilothouse.machinery.cel.environment import CompilationFailed, Environment
from pilothouse.machinery.cel.interpreter.values import Duration, Timestamp, Type, UInt, from_key, to_key, type_name
from pilothouse.machinery.cel.program import Program, ProgramFailed

REASONS = {
    "mixed": "literals of lists and maps have entries of one type",
    "unchecked": "every expression is type-checked before it runs",
    "strings": "version 2 of the string library: no reverse(), format() with the locale en_US, lenient offsets",
    "quoted": "field names in backquotes are not enabled",
    "container": "names are resolved without a container",
    "constant key": "a constant key of a wrong type is rejected when the program is created",
    "mapped": "IPv4-mapped IPv6 addresses are rejected",
    "optional field": "fields of optional values that are no map are absent",
    "repeated key": "the last of two equal keys wins",
}
CASES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "conformance.json").read_text(encoding="utf-8"))
BUILD: dict[str, Callable[[Any], Any]] = {
    "int": int,
    "uint": UInt,
    "double": float,
    "bytes": bytes.fromhex,
    "type": Type,
    "map": lambda pairs: {to_key(decoded(key)): decoded(value) for key, value in pairs},
    "duration": lambda time: Duration(time[0] * 10**9 + time[1]),
    "timestamp": lambda time: Timestamp(time[0] * 10**9 + time[1]),
}


def decoded(value: Any) -> Any:
    if isinstance(value, list):
        return [decoded(item) for item in value]
    if not isinstance(value, dict):
        return value
    [(kind, content)] = value.items()
    return BUILD[kind](content)


def same(expected: Any, value: Any) -> bool:
    """Compare types, too: 1 is not 1.0 here."""
    if type_name(expected) != type_name(value):
        return False
    if isinstance(expected, list):
        return len(expected) == len(value) and all(map(same, expected, value))
    if isinstance(expected, dict):
        return expected.keys() == value.keys() and all(same(expected[key], value[key]) for key in expected)
    return bool(expected == value or (expected != expected and value != value))


def outcome(case: dict[str, Any]) -> tuple[str, Any]:
    """Return what the expression gives: its type, its value or an error."""
    try:
        compiled = Environment(case.get("variables", {}), bindings=True).compile(case["expr"])
        program = Program(compiled.program)
    except (CompilationFailed, ProgramFailed) as error:
        return "error", str(error)
    if "type" in case and compiled.type != case["type"]:
        return "type", compiled.type
    if case.get("check_only"):
        return "type", compiled.type
    result = program.run({name: decoded(value) for name, value in case.get("bindings", {}).items()})
    return ("error", str(result.error)) if result.error is not None else ("value", result.value)


def passes(case: dict[str, Any]) -> bool:
    kind, found = outcome(case)
    if kind == "value":
        return "value" in case and same(decoded(case["value"]), found)
    return "error" in case if kind == "error" else bool(found == case["type"])


def test_expressions_have_the_specified_results() -> None:
    failed = [(case["name"], outcome(case)) for case in CASES if "excluded" not in case and not passes(case)]
    assert failed == []
    assert len(CASES) > 1500


@pytest.mark.parametrize("reason", REASONS)
def test_excluded_expressions_have_other_results(reason: str) -> None:
    excluded = [case for case in CASES if case.get("excluded") == reason]
    assert excluded
    assert [case["name"] for case in excluded if passes(case)] == []


def test_every_exclusion_has_a_reason() -> None:
    assert {case["excluded"] for case in CASES if "excluded" in case} == REASONS.keys()


def test_keys_of_maps_keep_their_type() -> None:
    assert [type(from_key(key)) for key in decoded({"map": [[True, 1], [{"int": 1}, 2], [{"uint": 1}, 3]]})] == [
        bool,
        int,
        UInt,
    ]
