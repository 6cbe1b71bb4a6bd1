"""Label selectors read, match, print and refuse as upstream's do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.machinery.selectors import label_parser
from pilothouse.machinery.selectors.label_parser import _Parser, parse_requirements
from pilothouse.machinery.selectors.labels import (
    EVERYTHING,
    NOTHING,
    Selector,
    format_label_selector,
    format_labels,
    from_label_selector,
    from_set,
    parse,
    validated_from_set,
)
from pilothouse.machinery.selectors.requirement import InvalidSelector, Operator, Requirement, new_requirement

NAME_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("", ""),
        ("a=b", "a=b"),
        ("a==b", "a==b"),
        (" a = b , c != d ", "a=b,c!=d"),
        ("z,y,!x", "!x,y,z"),
        ("n>5,m<1", "m<1,n>5"),
        ("tier in (web, db ,,web)", "tier in (,db,web)"),
        ("tier notin ()", "tier notin ()"),
        ("tier in (,)", "tier in ()"),
        ("tier in (a,)", "tier in (,a)"),
        ("in in (in, notin)", "in in (in,notin)"),
        ("a=", "a="),
        ("a=,b", "a=,b"),
        ("x.io/a", "x.io/a"),
        ("a\0,b", "a,b"),
        ("a,\0b", "a,b"),
        ("a=b\0\0,c", "a=b"),
    ],
)
def test_a_selector_prints_in_canonical_form(text: str, canonical: str) -> None:
    assert str(parse(text)) == canonical


PIECES = ["a", "in", "notin", "b-", "5", "=", "==", "!=", "!", ">", "(", ")", ",", " ", "\0", "\t"]


@settings(max_examples=500, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_a_text_is_read_as_if_it_were_read_token_by_token(text: str) -> None:
    def outcome(read: Callable[[], Iterable[Requirement]]) -> list[Requirement] | str:
        try:
            return list(read())
        except InvalidSelector as refusal:
            return str(refusal)

    by_token = outcome(lambda: _Parser(text, 0).requirements(after_comma=False))
    assert outcome(lambda: parse_requirements(text)) == by_token


@pytest.mark.parametrize(
    "text",
    ["a in (b),a", "a notin (v1, v2 ,, v3)", "a\0in\0( b\0, c )\0,!\0d", " a = b , c != , n > 5 ", "a in (),b=c\0\0,="],
)
def test_a_text_that_is_right_is_not_read_token_by_token(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(label_parser, "_Parser")
    assert parse_requirements(text)


def test_a_selector_of_many_requirements_matches_as_one_of_few() -> None:
    selector = parse(",".join(f"k{at}" for at in range(100)))
    labels = {f"k{at}": "" for at in range(100)}
    assert selector.matches(labels)
    assert selector.matches(labels)
    del labels["k77"]
    assert not selector.matches(labels)


def test_a_long_selector_is_not_kept() -> None:
    cached: Any = parse  # which has the methods of lru_cache too
    cached.cache_clear()
    parse("a in (" + ",".join(f"v{at}" for at in range(1000)) + ")")
    assert cached.cache_info().currsize == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("app like web", "unable to parse requirement: found 'like', expected: in, notin, =, ==, !=, gt, lt"),
        ("-bad=x", f'unable to parse requirement: <nil>: Invalid value: "-bad": {NAME_RULE}'),
        ("a,", "found '', expected: identifier after ','"),
        ("a,,b", "found ',', expected: identifier after ','"),
        (",a", "found ',', expected: !, identifier, or 'end of string'"),
        ("=", "found '=', expected: !, identifier, or 'end of string'"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("!!a", "unable to parse requirement: found '!', expected: identifier"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("a=(b)", "unable to parse requirement: found '(', expected: identifier"),
        ("a===b", "unable to parse requirement: found '=', expected: identifier"),
        ("a>=1", "unable to parse requirement: found '=', expected: identifier"),
        ("a in", "unable to parse requirement: found '' expected: '('"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'"),
        ("a in (b,", "unable to parse requirement: found '', expected: ',', or identifier"),
        ("a in (b,(", "unable to parse requirement: found '(', expected: ',', or identifier"),
        (
            "a>x",
            'unable to parse requirement: values[0]: Invalid value: "x": '
            "for 'Gt', 'Lt' operators, the value must be an integer",
        ),
        (
            "a>9223372036854775808",
            'unable to parse requirement: values[0]: Invalid value: "9223372036854775808": '
            "for 'Gt', 'Lt' operators, the value must be an integer",
        ),
        ("a=b@", f'unable to parse requirement: values[0][a]: Invalid value: "b@": {VALUE_RULE}'),
    ],
)
def test_a_text_that_is_no_selector_is_refused_with_upstreams_words(text: str, message: str) -> None:
    with pytest.raises(InvalidSelector) as refusal:
        parse(text)
    assert str(refusal.value) == message


def test_a_requirement_with_several_faults_names_them_all() -> None:
    with pytest.raises(InvalidSelector) as refusal:
        new_requirement("-", Operator.IN)
    assert str(refusal.value) == (
        f'[key: Invalid value: "-": {NAME_RULE}, '
        "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty]"
    )


@pytest.mark.parametrize(
    ("operator", "values", "message"),
    [
        (
            Operator.EQUALS,
            ["a", "b"],
            'values: Invalid value: ["a","b"]: exact-match compatibility requires one single',
        ),
        (
            Operator.EXISTS,
            ["a"],
            'values: Invalid value: ["a"]: values set must be empty for exists and does not exist',
        ),
        (Operator.LESS_THAN, [], "values: Invalid value: []: for 'Gt', 'Lt' operators, exactly one value is required"),
    ],
)
def test_an_operator_refuses_the_wrong_number_of_values(operator: Operator, values: list[str], message: str) -> None:
    with pytest.raises(InvalidSelector) as refusal:
        new_requirement("a", operator, values)
    assert str(refusal.value).startswith(message)


@pytest.mark.parametrize(
    ("text", "labels", "expected"),
    [
        ("n>5", {"n": "6"}, True),
        ("n>5", {"n": "5"}, False),
        ("n>5", {"n": "six"}, False),
        ("n>5", {}, False),
        ("n<5", {"n": "04"}, True),
        ("n<5", {"n": "9223372036854775808"}, False),
    ],
)
def test_order_compares_labels_as_integers(text: str, labels: dict[str, str], expected: bool) -> None:
    assert parse(text).matches(labels) is expected


def test_everything_and_nothing_are_told_apart() -> None:
    assert EVERYTHING.empty
    assert EVERYTHING.matches({})
    assert not NOTHING.empty
    assert not NOTHING.matches({"a": "b"})
    assert NOTHING.add(Requirement("a", Operator.EXISTS)) is NOTHING
    assert NOTHING != EVERYTHING


def test_equal_texts_parse_to_the_same_selector_and_equal_selectors_hash_alike() -> None:
    assert parse("a=b,c") is parse("a=b,c")
    assert hash(parse("c,a=b")) == hash(parse("a=b,c"))
    assert parse("c,a=b") == parse("a=b,c")


def test_an_exact_match_is_known_only_when_one_value_is_possible() -> None:
    selector = parse("a=1,b in (2),c in (3,4),d!=5,e")
    answers = {label: selector.requires_exact_match(label) for label in "abcdef"}
    assert answers == {"a": "1", "b": "2", "c": None, "d": None, "e": None, "f": None}


def test_a_label_selector_object_means_what_its_text_means() -> None:
    selector = from_label_selector(
        {
            "matchLabels": {"b": "1"},
            "matchExpressions": [
                {"key": "a", "operator": "NotIn", "values": ["y", "x"]},
                {"key": "c", "operator": "Exists"},
                {"key": "d", "operator": "DoesNotExist", "values": []},
            ],
        }
    )
    assert str(selector) == "a notin (x,y),b=1,c,!d"
    assert selector.matches({"b": "1", "c": ""})
    assert not selector.matches({"a": "x", "b": "1", "c": ""})


def test_no_label_selector_matches_nothing_and_an_empty_one_everything() -> None:
    assert from_label_selector(None) is NOTHING
    assert from_label_selector({}) is EVERYTHING
    assert format_label_selector(None) == "<none>"


def test_a_label_selector_with_an_unknown_operator_is_refused() -> None:
    selector = {"matchExpressions": [{"key": "a", "operator": "Like"}]}
    with pytest.raises(InvalidSelector, match=r'^"Like" is not a valid label selector operator$'):
        from_label_selector(selector)
    assert format_label_selector(selector) == "<error>"


def test_a_set_of_labels_becomes_a_selector_for_them() -> None:
    assert str(from_set({"b": "2", "a": "1"})) == "a=1,b=2"
    assert validated_from_set({"a": "1"}) == from_set({"a": "1"})
    with pytest.raises(InvalidSelector):
        validated_from_set({"a": "no good"})


def test_labels_print_sorted() -> None:
    assert format_labels({"b": "2", "a": "1"}) == "a=1,b=2"
    assert format_labels({}) == "<none>"


KEYS = st.sampled_from(["a", "b", "x.io/c", "in", "notin"])
VALUES = st.sampled_from(["", "1", "2", "10", "in", "x-y"])
NUMBERS = st.integers(0, 12).map(str)


@st.composite
def requirements(draw: st.DrawFn) -> Requirement:
    operator = draw(st.sampled_from(list(Operator)))
    if operator in (Operator.EXISTS, Operator.DOES_NOT_EXIST):
        values: list[str] = []
    elif operator in (Operator.IN, Operator.NOT_IN):
        values = sorted(draw(st.sets(VALUES, min_size=1)))
    elif operator in (Operator.GREATER_THAN, Operator.LESS_THAN):
        values = [draw(NUMBERS)]
    else:
        values = [draw(VALUES)]
    return new_requirement(draw(KEYS), operator, values)


def naive(requirement: Requirement, labels: dict[str, str]) -> bool:
    has, value = requirement.key in labels, labels.get(requirement.key, "")
    match requirement.operator:
        case Operator.EXISTS:
            return has
        case Operator.DOES_NOT_EXIST:
            return not has
        case Operator.NOT_IN | Operator.NOT_EQUALS:
            return not has or value not in requirement.values
        case Operator.GREATER_THAN:
            return value.isdigit() and int(value) > int(requirement.values[0])
        case Operator.LESS_THAN:
            return value.isdigit() and int(value) < int(requirement.values[0])
    return has and value in requirement.values


@given(st.lists(requirements(), max_size=4))
def test_what_a_selector_prints_parses_to_the_same_selector(terms: list[Requirement]) -> None:
    selector = Selector(tuple(terms))
    assert parse(str(selector)) == selector


@given(st.lists(requirements(), max_size=4), st.dictionaries(KEYS, VALUES))
def test_a_selector_matches_when_each_requirement_does(terms: list[Requirement], labels: dict[str, str]) -> None:
    assert Selector(tuple(terms)).matches(labels) is all(naive(term, labels) for term in terms)


@given(st.text(alphabet="ab=!(),<> in\0", max_size=20))
def test_any_text_is_either_parsed_or_refused(text: str) -> None:
    try:
        selector = parse(text)
    except InvalidSelector:
        return
    assert parse(str(selector)) == selector


@given(
    st.lists(
        st.one_of(
            st.builds(
                Requirement,
                st.sampled_from("abc"),
                st.sampled_from([Operator.IN, Operator.NOT_IN]),
                st.lists(st.sampled_from(["", "1", "5", "x"]), min_size=1, max_size=4).map(tuple),
            ),
            st.builds(
                Requirement,
                st.sampled_from("abc"),
                st.sampled_from([Operator.NOT_EQUALS, Operator.GREATER_THAN, Operator.LESS_THAN]),
                st.sampled_from([("0",), ("1",), ("9",)]),
            ),
            st.builds(Requirement, st.sampled_from("abc"), st.sampled_from([Operator.EXISTS, Operator.DOES_NOT_EXIST])),
        ),
        min_size=1,
        max_size=4,
    ),
    st.dictionaries(st.sampled_from("abcd"), st.sampled_from(["", "1", "5", "x"])),
)
def test_many_requirements_match_as_each_of_them_does(found: list[Requirement], labels: dict[str, str]) -> None:
    """Many of few different requirements, because many different ones match nothing."""
    expected = all(requirement.matcher()(labels) for requirement in found)
    assert Selector(tuple(found * 17)).matches(labels) is expected


def test_a_match_of_very_many_requirements_looks_only_at_the_labels_of_the_object() -> None:
    class Counted(dict[str, str]):
        looked_at = 0

        def get(self, *args: Any) -> Any:
            Counted.looked_at += 1
            return super().get(*args)

    selector = parse(",".join(f"label-{at}!=v" for at in range(5_000)))
    assert selector.matches(Counted(a="b", c="d"))
    assert Counted.looked_at <= 2
