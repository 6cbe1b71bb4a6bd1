"""The rules of a schema on objects: who is refused, where, with which words, and what they compare with."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.apiserver.offload import NeedsOffload
from pilothouse.extensions.schema.compiled import compile_schema, tolerated_errors


def ruled(schema: dict[str, Any], *rules: str | dict[str, Any]) -> dict[str, Any]:
    return {**schema, "x-kubernetes-validations": [{"rule": r} if isinstance(r, str) else r for r in rules]}


def errors(schema: dict[str, Any], value: Any, old: Any = None) -> list[str]:
    """`schema` is that of the field `v`."""
    compiled = compile_schema({"type": "object", "properties": {"v": schema}}, preserve_unknown_fields=False)
    found = compiled.validate({"v": value}) if old is None else compiled.validate_update({"v": value}, {"v": old})
    return [str(error) for error in found]


INTEGER = {"type": "integer"}
TEXT = {"type": "string"}


def test_a_rule_that_holds_says_nothing() -> None:
    assert errors(ruled(INTEGER, "self > 1"), 2) == []


def test_a_scalar_is_shown_and_an_object_is_not() -> None:
    assert errors(ruled(INTEGER, "self > 1"), 1) == ["v: Invalid value: 1: failed rule: self > 1"]
    assert errors(ruled({"type": "object"}, "false"), {}) == ["v: Invalid value: failed rule: false"]


def test_message_expression_overrides_the_message_unless_it_fails() -> None:
    said = {"rule": "self > 1", "message": "too small", "messageExpression": "'%d is small'.format([self])"}
    assert errors(ruled(INTEGER, said), 1) == ["v: Invalid value: 1: 1 is small"]
    failing = {**said, "messageExpression": "string(1 / (self - self))"}
    assert errors(ruled(INTEGER, failing), 1) == ["v: Invalid value: 1: too small"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x" * 5120, "x" * 5120),
        ("x" * 5121, "fixed"),
        ("ä" * 2561, "fixed"),  # it is bytes that count
        ("two\nlines", "fixed"),
        ("   ", "fixed"),
        ("  trimmed ", "trimmed"),
    ],
)
def test_message_expression_must_yield_a_valid_message(text: str, said: str) -> None:
    rule = {"rule": "false", "message": " fixed ", "messageExpression": "self.text"}
    whole = ruled({"type": "object", "properties": {"text": TEXT}}, rule)
    assert errors(whole, {"text": text}) == [f"v: Invalid value: {said}"]


def test_reason_and_field_path_set_error_type_and_path() -> None:
    obj = {"type": "object", "properties": {"a": INTEGER}}
    required = {"rule": "has(self.a)", "reason": "FieldValueRequired", "fieldPath": ".a", "message": "say a"}
    assert errors(ruled(obj, required), {}) == ["v.a: Required value: say a"]
    assert errors(ruled(obj, {"rule": "false", "reason": "FieldValueForbidden"}), {}) == [
        "v: Forbidden: failed rule: false"
    ]
    assert errors(ruled(obj, {"rule": "false", "reason": "FieldValueDuplicate"}), {}) == ["v: Duplicate value"]


def test_a_transition_rule_runs_only_where_there_was_a_value() -> None:
    schema = ruled(INTEGER, "self >= oldSelf")
    assert errors(schema, 1) == []
    assert errors(schema, 1, old=2) == ["v: Invalid value: 1: failed rule: self >= oldSelf"]
    assert errors(schema, 3, old=2) == []


def test_an_optional_old_value_can_be_asked_for() -> None:
    rule: dict[str, Any] = {"rule": "oldSelf.hasValue() || self.startsWith('new')", "optionalOldSelf": True}
    assert errors(ruled(TEXT, rule), "old") == ['v: Invalid value: "old": failed rule: ' + rule["rule"]]
    assert errors(ruled(TEXT, rule), "old", old="x") == []


def test_a_part_that_did_not_change_is_let_pass_but_not_by_rules_about_change() -> None:
    assert errors(ruled(INTEGER, "self > 5"), 1, old=1) == []
    assert errors(ruled(INTEGER, "self > oldSelf"), 1, old=1) == ["v: Invalid value: 1: failed rule: self > oldSelf"]


def test_items_of_a_map_list_are_compared_by_key() -> None:
    item = ruled({"type": "object", "properties": {"k": TEXT, "n": INTEGER}}, "self.n >= oldSelf.n")
    schema = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": item}
    old = [{"k": "a", "n": 5}, {"k": "b", "n": 1}]
    assert errors(schema, [{"k": "b", "n": 2}, {"k": "a", "n": 4}], old) == [
        "v[1]: Invalid value: failed rule: self.n >= oldSelf.n"
    ]


SET = {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT}
MAP = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["k"],
    "items": {"type": "object", "properties": {"k": TEXT, "n": INTEGER}},
}


@pytest.mark.parametrize(
    ("schema", "rule", "value", "old"),
    [
        (SET, "self == oldSelf && !(self != oldSelf)", ["a", "b"], ["b", "a"]),
        (SET, "self != oldSelf", ["a", "b"], ["b", "c"]),
        (SET, "self != oldSelf && size(self) == 2", ["a", "b"], ["a"]),
        (SET, "self == ['b', 'a'] && ['b', 'a'] != self", ["a", "b"], ["x"]),
        (SET, "(self + oldSelf).map(x, x) == ['a', 'b', 'c']", ["a", "b"], ["b", "c"]),
        (SET, "self + oldSelf == ['c', 'b', 'a'] && self[0] == 'a' && 'b' in self", ["a", "b"], ["c"]),
        (MAP, "self == oldSelf", [{"k": "a", "n": 1}, {"k": "b"}], [{"k": "b"}, {"k": "a", "n": 1}]),
        (MAP, "self != oldSelf", [{"k": "a", "n": 1}], [{"k": "a", "n": 2}]),
        (MAP, "(self + oldSelf).map(x, x.n) == [2, 3]", [{"k": "a", "n": 1}], [{"k": "a", "n": 2}, {"k": "b", "n": 3}]),
    ],
)
def test_the_order_of_sets_and_maps_says_nothing(schema: dict[str, Any], rule: str, value: Any, old: Any) -> None:
    assert errors(ruled(schema, rule), value, old) == []
    assert len(errors(ruled(schema, f"!({rule}) || oldSelf == []"), value, old)) == 1


def test_a_failing_evaluation_is_told_in_the_words_of_cel_go() -> None:
    assert errors(ruled({"type": "array", "items": INTEGER}, "self[3] == 1"), [1]) == [
        'v: Invalid value: "array": index out of bounds: 3 evaluating rule: self[3] == 1'
    ]
    number_or_text = ruled({"x-kubernetes-int-or-string": True}, {"rule": "self > 1", "message": "be more"})
    assert errors(number_or_text, "x") == [
        "v: Invalid value: \"\": 'no such overload': call arguments did not match a supported operator, function or "
        "macro signature for rule: be more"
    ]
    assert errors(ruled({"type": "object", "additionalProperties": INTEGER}, "self['a'] > 1"), {"b": 1}) == [
        "v: Invalid value: \"object\": no such key: a evaluating rule: self['a'] > 1"
    ]


@pytest.mark.parametrize(
    ("schema", "rule", "value"),
    [
        ({**TEXT, "format": "date-time"}, "self < timestamp('2020-01-01T00:00:00Z')", "2019-06-01T00:00:00+02:00"),
        ({**TEXT, "format": "date"}, "self == timestamp('2019-06-01T00:00:00Z')", "2019-06-01"),
        ({**TEXT, "format": "duration"}, "self == duration('90s')", "1m30s"),
        ({**TEXT, "format": "byte"}, "self == b'hi'", "aGk="),
        ({"type": "number"}, "type(self) == double", 1),
        ({"x-kubernetes-int-or-string": True}, "type(self) == int", 1),
        (TEXT, "quantity(self).isGreaterThan(quantity('1')) && quantity('1') == quantity('1000m')", "1500m"),
        (TEXT, "quantity(self).add(quantity('2')).compareTo(quantity('5')) == 0", "3"),
        (TEXT, "cidr('10.0.0.0/8').containsIP(self) && ip(self).family() == 4", "10.1.2.3"),
        (TEXT, "!isIP(self) && string(ip('::1')) == '::1'", "10.1.2"),
        (TEXT, "url(self).getHostname() == 'a.b' && url(self).getPort() == '8'", "https://a.b:8/x?y=z"),
        (TEXT, "url(self).getQuery()['y'] == ['z']", "https://a.b:8/x?y=z"),
        (TEXT, "semver(self).isLessThan(semver('1.10.0')) && semver(self).minor() == 9", "1.9.0-rc.1"),
        (TEXT, "self.find('[0-9]+') == '12' && self.findAll('[a-z]') == ['a', 'b']", "a12b"),
        ({"type": "array", "items": INTEGER}, "self.isSorted() && self.sum() == 6 && self.max() == 3", [1, 2, 3]),
        ({"type": "array", "items": TEXT}, "self.indexOf('b') == 1 && self.join('-') == 'a-b'", ["a", "b"]),
        ({"type": "object", "properties": {"x-y": INTEGER}}, "self.x__dash__y == 1", {"x-y": 1}),
        ({"type": "object", "properties": {"namespace": TEXT}}, "self.__namespace__ == 'n'", {"namespace": "n"}),
        ({"type": "object", "properties": {"a": INTEGER}}, "self.?a.orValue(7) == 7", {}),
        (TEXT, "!format.dns1123Label().validate(self).hasValue()", "a-b"),
        (TEXT, "format.named('uuid').value().validate(self).value() == ['does not match the UUID format']", "x"),
        (TEXT, "!format.named('nonsense').hasValue() && self == 'x'", "x"),
        ({"type": "array", "items": INTEGER}, "sets.contains(self, [2]) && !sets.intersects(self, [9])", [1, 2]),
        ({"type": "array", "items": INTEGER}, "self.all(i, v, v == i + 1) && self.exists(i, v, i == 1)", [1, 2]),
        ({"type": "array", "items": INTEGER}, "self.transformList(i, v, v * 2) == [2, 4]", [1, 2]),
        ({"type": "object", "additionalProperties": INTEGER}, "self.all(k, v, k == 'a' && v == 1)", {"a": 1}),
        (TEXT, "self.lowerAscii().split('-')[1].replace('b', 'c') == 'c'", "A-B"),
        ({"type": "array", "items": INTEGER}, "self.sort() == [1, 2] && self.distinct().size() == 2", [2, 1]),
    ],
)  # fmt: skip
def test_rules_have_the_values_and_functions_of_kubernetes(schema: dict[str, Any], rule: str, value: Any) -> None:
    assert errors(ruled(schema, rule), value) == []
    assert errors(ruled(schema, f"!({rule})"), value) != []


def test_the_root_sees_its_name_but_no_other_metadata() -> None:
    schema = ruled({"type": "object"}, "self.metadata.name == 'a' && !has(self.metadata.generateName)")
    compiled = compile_schema(schema, preserve_unknown_fields=False)
    assert list(compiled.validate({"kind": "K", "metadata": {"name": "a", "labels": {"x": "y"}}})) == []
    assert len(list(compiled.validate({"kind": "K", "metadata": {"name": "b"}}))) == 1


def test_tolerated_violation_is_a_warning() -> None:
    schema = {"type": "object", "properties": {"v": ruled(INTEGER, "self > 5"), "w": INTEGER}}
    compiled = compile_schema(schema, preserve_unknown_fields=False)
    assert list(compiled.validate_update({"v": 1, "w": 2}, {"v": 1, "w": 1})) == []
    assert tolerated_errors() == ["v: Invalid value: 1: failed rule: self > 5"]
    assert list(compiled.validate_update({"v": 6}, {"v": 6})) == []
    assert tolerated_errors() == []


MANY = {"type": "array", "items": INTEGER}
DEAR = "self.all(x, self.all(y, x + y >= 0))"


@pytest.fixture
def at_leisure(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a thread, where rules may take long."""
    monkeypatch.setattr("pilothouse.extensions.schema.rules.programs.is_offloaded", lambda: True)


@pytest.mark.usefixtures("at_leisure")
def test_a_rule_that_costs_too_much_ends_all_validation() -> None:
    schema = ruled(MANY, {"rule": DEAR, "message": "be less"}, "false")
    assert errors(schema, list(range(500))) == [
        "v: Invalid value: \"array\": 'operation cancelled: actual cost limit exceeded': "
        "no further validation rules will be run due to call cost exceeds limit for rule: be less"
    ]


@pytest.mark.usefixtures("at_leisure")
def test_a_message_that_costs_too_much_ends_all_validation() -> None:
    said = {"rule": "false", "messageExpression": f"{DEAR} ? 'a' : 'b'"}
    assert errors(ruled(MANY, said, "false"), list(range(500))) == [
        'v: Invalid value: "array": no further validation rules will be run due to call cost exceeds limit for '
        f'messageExpression: "{said["messageExpression"]}"'
    ]


@pytest.mark.usefixtures("at_leisure")
def test_all_rules_of_an_object_share_one_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pilothouse.extensions.schema.rules.programs.RUNTIME_BUDGET", 1000)
    schema = {"type": "array", "items": ruled(MANY, "self.all(x, x >= 0)")}
    found = errors(schema, [list(range(100)), [1, 2], list(range(100))] * 9)
    assert found == [
        'v[2]: Invalid value: "array": validation failed due to running out of cost budget, '
        "no further validation rules will be run"
    ]


def test_where_the_event_loop_waits_dear_rules_are_not_run_to_their_end() -> None:
    with pytest.raises(NeedsOffload):
        errors(ruled(MANY, DEAR), list(range(200)))


def test_rules_cannot_bind_names() -> None:
    [error] = errors(ruled(INTEGER, "cel.bind(s, self, s == 3)"), 3)
    assert "undeclared reference to 'cel' (in container '')" in error
