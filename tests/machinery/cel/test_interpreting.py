"""Evaluating checked expressions on plain JSON: values, cel-go's words for failures, and costs."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.machinery.cel.environment import Environment
from pilothouse.machinery.cel.interpreter.errors import CostLimitExceeded, EvaluationFailed
from pilothouse.machinery.cel.interpreter.values import Duration, Optional, Struct, Timestamp, UInt
from pilothouse.machinery.cel.program import EvaluationOutcome, Program

OBJECT: dict[str, Any] = {
    "one": 1,
    "text": "héllo wörld",
    "list": [1, 2, 3],
    "map": {"x": "y", "z": None},
    "items": [{"k": "a", "v": 1}, {"k": "b", "v": 2}],
    "half": 1.5,
    "nothing": None,
}
ENVIRONMENT = Environment({"object": "dyn"}, bindings=True)


def run(expression: str, **options: Any) -> EvaluationOutcome:
    program = Program(ENVIRONMENT.compile(expression).program)
    return program.run({"object": OBJECT}, **options)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("-7 / 2", -3),
        ("-7 % 3", -1),
        ("object.list.all(x, x > 0) && !object.list.exists(x, x > 3)", True),
        ("object.list.exists(x, 1 / (x - 1) == 1)", True),
        ("object.list.map(x, object.list.filter(y, y > x))", [[2, 3], [3], []]),
        ("object.items.map(e, e.v > 1, e.k)", ["b"]),
        ("has(object.map.x) && !has(object.map.q) && !has(object.nothing.q)", True),
        ("object.missing == 1 || object.one == 1", True),
        ("object.missing == 1 && object.one == 2", False),
        ("object.one == 1 ? 'yes' : object.missing", "yes"),
        ("dyn(1) == 1.0 && dyn(1) == 1u && dyn(true) != 1", True),
        ("[dyn(1), dyn(2.0)] == [dyn(1.0), dyn(2)]", True),
        ("object.text.substring(1, 3) + object.text.charAt(0)", "élh"),
        ("object.text.lastIndexOf('l', 3)", 3),
        ("'a,b,c'.split(',', 2)", ["a", "b,c"]),
        ("'%s %d %.1f %x %b %s'.format(['a', 1, 1.25, 255, 5, object.map])", 'a 1 1.2 ff 101 {"x":"y", "z":null}'),
        ("'100%%'.format([])", "100%"),
        ("object.?missing.orValue(5)", 5),
        ("object.?map.x", Optional(True, "y")),
        ("object.?map.q.hasValue()", False),
        ("[?object.?one, ?object.?missing]", [1]),
        ("{?'a': object.?one, ?'b': object.?missing}", {"a": 1}),
        ("{'a': 1}.transformMap(k, v, v + 1)", {"a": 2}),
        ("{'a': 'b'}.transformMapEntry(k, v, {v: k})", {"b": "a"}),
        ("object.items.sortBy(e, -e.v).map(e, e.k)", ["b", "a"]),
        ("[[dyn(1)], [dyn(2), dyn([3])]].flatten()", [1, 2, [3]]),
        ("cel.bind(x, object.missing, true)", True),
        ("timestamp('2020-02-03T04:05:06Z').getHours('+02:30')", 6),
        ("timestamp('2020-02-03T04:05:06.5+01:00')", Timestamp(1580699106_500_000_000)),
        ("string(timestamp('2020-02-03T04:05:06.5+01:00'))", "2020-02-03T04:05:06.5+01:00"),
        ("timestamp('2020-01-01T00:00:01Z') - timestamp('2020-01-01T00:00:00Z')", Duration(10**9)),
        ("string(duration('1h0.5s'))", "3600.5s"),
        ("string(1.0) + string(1e30) + string(12u)", "11e+3012"),
        ("uint(3)", UInt(3)),
        ("quantity('1Gi').isGreaterThan(quantity('1M'))", True),
        ("cidr('10.0.0.0/8').containsIP(ip('10.1.1.1'))", True),
        ("semver('v1.2', true).isLessThan(semver('1.10.0'))", True),
        ("format.dns1123Label().validate('No!').hasValue()", True),
        ("format.dns1123Label().validate('yes').hasValue()", False),
        ("format.named('uuid').hasValue() && !format.named('nope').hasValue()", True),
        ("type(object.half) == double && type(ip('::1')) == type(ip('1.1.1.1'))", True),
    ],
)
def test_an_expression_has_its_value(expression: str, value: Any) -> None:
    outcome = run(expression)
    assert outcome.error is None
    assert outcome.value == value
    assert type(outcome.value) is type(value)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("object.missing", "no such key: missing"),
        ("object.nothing.field", "no such key: field"),
        ("object.list[3]", "index out of bounds: 3"),
        ("object.text > 1", "no such overload"),
        ("object.nothing + 1", "no such overload: _+_"),
        ("object.text || false", "no such overload"),
        ("9223372036854775807 + object.one", "integer overflow"),
        ("object.one / 0", "division by zero"),
        ("object.one % 0", "modulus by zero"),
        ("int(object.text)", "type conversion error from 'string' to 'int'"),
        ("timestamp(object.text)", "type conversion error from 'string' to 'google.protobuf.Timestamp'"),
        ("object.text.substring(3, 1)", "invalid substring range. start: 3, end: 1"),
        ("object.text.charAt(20)", "index out of range: 20"),
        ("optional.none().value()", "optional.none() dereference"),
        ("[3, 1].slice(0, 5)", "cannot slice(0, 5), list is length 2"),
        ("[1].transformMapEntry(i, v, {'k': v}) == {} || [1, 2].transformMapEntry(i, v, {'k': v}) == {}", "insert"),
    ],
)
def test_a_failure_has_the_words_of_go(expression: str, message: str) -> None:
    outcome = run(expression)
    assert isinstance(outcome.error, EvaluationFailed)
    assert str(outcome.error).startswith(message) if message == "insert" else str(outcome.error) == message


@pytest.mark.parametrize(
    ("expression", "cost"),
    [
        ("object.one == 1", 3),
        ("object.map.x", 3),
        ("has(object.map)", 1),
        ("object.text.startsWith('h')", 4),
        ("[1, 2]", 0),
        ("[object.one, object.one]", 14),
        ("{'a': 1}", 0),
        ("{'a': object.one}", 32),
        ("duration('1m') == duration('60s')", 1),
        ("object.text in ['hello', 'other']", 2),
        ("object.text in [object.text, object.text]", 18),
        ("[1, 2].all(x, x > 0)", 11),
        ("[1, 2].map(x, x)", 27),
        ("object.one == 1 ? object.text : 'other'", 4),
        ("object.map['x']", 3),
        ("object.list[object.one]", 4),
        ("object.?missing.hasValue()", 2),
        ("[3, 1, 2].sort()", 29),
        ("[3, 1, 2].reverse()", 14),
        ("true || object.one == 1", 0),
    ],
)
def test_an_evaluation_costs_what_upstream_charges(expression: str, cost: int) -> None:
    assert run(expression).cost == cost


def test_an_evaluation_ends_at_its_cost_limit_whatever_the_expression_makes_of_failures() -> None:
    expression = "true || lists.range(1000).all(x, lists.range(1000).all(y, x + y >= 0))"
    assert run(expression, limit=100).value is True
    expression = "lists.range(1000).all(x, lists.range(1000).all(y, x + y >= 0)) || true"
    outcome = run(expression, limit=5000)
    assert isinstance(outcome.error, CostLimitExceeded)
    assert str(outcome.error) == "operation cancelled: actual cost limit exceeded"
    assert outcome.cost < 10_000


def test_objects_that_an_expression_makes_keep_their_types() -> None:
    from pilothouse.machinery.cel.admission import AdmissionCompiler, Declarations

    expression = "Object{metadata: Object.metadata{labels: {'a': object.x}, ?name: object.?y}}"
    compiled = AdmissionCompiler().compile(expression, Declarations(patch_types=True))
    made = Program(compiled.program).evaluate({"object": {"x": "1"}})
    assert made == Struct("Object", {"metadata": Struct("Object.metadata", {"labels": {"a": "1"}})})
