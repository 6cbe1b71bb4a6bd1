"""The estimated costs of rules are cel-go's."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.extensions.schema.rules.declared import declared_type
from pilothouse.extensions.schema.rules.programs import TypedEnvironment
from pilothouse.extensions.schema.structural import structural
from pilothouse.machinery.cel.cost.estimate import estimated_cost


def cost(schema: dict[str, Any], rule: str) -> int:
    declared = declared_type(structural(schema), root=False)
    assert declared is not None
    return estimated_cost(TypedEnvironment(declared).compile(rule).program, declared)


NUMBERS = {"type": "array", "items": {"type": "number"}}
TEXTS = {"type": "array", "items": {"type": "string"}}
MAP = {"type": "object", "additionalProperties": {"type": "integer"}}
TEXT = {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "rule", "expected"),
    [
        (NUMBERS, "self.all(x, true)", 4718591),
        ({**NUMBERS, "maxItems": 10}, "self.all(x, true)", 32),
        (NUMBERS, "self.all(x, x == 0.0)", 6291454),
        (MAP, "oldSelf.size() == self.size()", 5),
        (TEXT, "self.contains('test')", 314574),
        ({**TEXT, "maxLength": 10}, "self.contains('test')", 5),
        ({**TEXT, "maxLength": 10}, "self == 'xy'", 2),
        ({**TEXT, "enum": ["a", "bc"]}, "self.contains('test')", 2),
    ],
)
def test_a_rule_costs_what_upstream_estimates(schema: dict[str, Any], rule: str, expected: int) -> None:
    assert cost(schema, rule) == expected


NAMES = {"type": "array", "maxItems": 7, "items": {"type": "string", "maxLength": 20}}
ROWS = {"type": "array", "maxItems": 6, "items": {**NAMES, "maxItems": 5}}
SHORT = {**TEXT, "maxLength": 100}


@pytest.mark.parametrize(
    ("schema", "rule", "expected"),
    [
        (NAMES, "sets.contains(self, ['a', 'b'])", 26),
        (NAMES, "sets.equivalent(self, self)", 101),
        (NAMES, "self.sort().size() > 3", 117),
        (NAMES, "self.sortBy(x, x).size() > 3", 231),
        (NAMES, "self.distinct().size() > 3", 112),
        (NAMES, "self.reverse().size() > 3", 21),
        (NAMES, "self.slice(0, 3).size() > 3", 17),
        (ROWS, "self.flatten().size() > 3", 20),
        (ROWS, "self.all(row, row.all(x, x.matches('a+')))", 422),
        (ROWS, "self.map(row, row.join(',')).all(x, x.contains('x'))", 367),
        (SHORT, "strings.quote(self).contains('x')", 122),
        (SHORT, "format.dns1123Label().validate(self).hasValue()", 1283),
        (SHORT, "format.dns1123Label() == format.uuid()", 9),
        (SHORT, "quantity(self) == quantity('1')", 43),
        (SHORT, "cidr(self).ip() == ip('1.1.1.1')", 44),
        (SHORT, "url(self) == url(self)", 122),
    ],
)
def test_library_functions_cost_as_estimated_upstream(schema: dict[str, Any], rule: str, expected: int) -> None:
    assert cost(schema, rule) == expected


def test_nested_loops_over_lists_without_limit_multiply() -> None:
    once = cost(TEXTS, "self.all(x, x != '')")
    assert cost(TEXTS, "self.all(x, self.all(y, x != y))") > once * 1000


def test_limits_make_rules_cheaper() -> None:
    limited = {**TEXTS, "maxItems": 5, "items": {"type": "string", "maxLength": 5}}
    rule = "self.all(x, x.matches('[a-z]+'))"
    assert cost(limited, rule) < 1000 < cost(TEXTS, rule)
