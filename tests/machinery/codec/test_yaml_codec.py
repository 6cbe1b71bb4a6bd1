"""YAML text to JSON values, and back to the text that upstream prints."""

from __future__ import annotations

import random
import time
from functools import cmp_to_key
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.machinery.codec.yaml import parse_yaml
from pilothouse.machinery.codec.yaml_emit import _compare, emit_yaml, in_natural_order
from pilothouse.machinery.codec.yaml_nodes import YamlError

WORDS = st.sampled_from(
    ["yes", "n", "~", "null", "", "1", "0x1f", "1e3", "1:30", "2020-01-01", "- a", "a: b", "#", ".inf"]
)
TEXTS = WORDS | st.text(st.sampled_from("ab 1.:#-'\"\\\n\t\u00e9\u2028\U0001f600{}[]&*!|>%@`,?"), max_size=8)
NUMBERS = st.integers(-(1 << 63), (1 << 64) - 1) | st.floats(0.01, 0.99)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def _in_flow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    items = st.lists(inner, max_size=4)
    pairs = st.lists(st.tuples(st.sampled_from(["a", "b", "1"]), inner), max_size=4)
    return items.map(lambda each: f"[{', '.join(each)}]") | pairs.map(
        lambda each: "{" + ", ".join(f"{key}: {value}" for key, value in each) + "}"
    )


@settings(max_examples=150, deadline=None)
@given(VALUES)
def test_yaml_round_trips(value: Any) -> None:
    parsed = parse_yaml(emit_yaml(value))
    assert parsed.value == value
    assert parsed.strict_error == ""


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", True), ("Y", True), ("on", True), ("n", False), ("Off", False), ("yEs", "yEs"),
        ("~", None), ("Null", None), ("", None),
        ("010", 8), ("0o17", 15), ("0x1F", 31), ("0b101", 5), ("-0b11", -3), ("1_000", 1000), ("+5", 5),
        ("08", 8), ("3.0", 3), ("1e3", 1000), (".5", 0.5), ("0.5e-1", 0.05), ("1.2.3", "1.2.3"),
        ("18446744073709551615", 18446744073709551615), ("99999999999999999999", 10**20),
        ("1:30", "1:30"), ("2020-01-01", "2020-01-01"), ("12e03", 12000), ("0x", "0x"), ("-", "-x"),
        ('"yes"', "yes"), ("'1'", "1"), ("!!str 1", "1"), ("!!float 1", 1), ("!!binary aGk=", "hi"), ("!odd x", "x"),
    ],
)  # fmt: skip
def test_plain_scalars_resolve_as_in_go(text: str, value: Any) -> None:
    text = "-x" if text == "-" else text
    assert parse_yaml(f"a: {text}".encode()).value == {"a": value}


def test_keys_become_strings_and_are_sorted() -> None:
    found = parse_yaml(b"b: 1\n1: a\ntrue: b\n1.5: c\n0x10: d").value
    assert list(found.items()) == [("1", "a"), ("1.5", "c"), ("16", "d"), ("b", 1), ("true", "b")]


@pytest.mark.parametrize("text", [b"", b"\n", b"# nothing", b"---\n"])
def test_no_document_is_null(text: bytes) -> None:
    assert parse_yaml(text).value is None


def test_only_the_first_document_counts() -> None:
    assert parse_yaml(b"a: 1\n---\n[broken").value == {"a": 1}


def test_merge_keys_take_effect_where_they_stand() -> None:
    text = b"base: &b {a: 1, b: 2}\nafter: {<<: *b, a: 3}\nbefore: {a: 3, <<: *b}\nmany: {<<: [*b, {b: 9, c: 9}]}"
    found = parse_yaml(text)
    assert found.value["after"] == {"a": 3, "b": 2}
    assert found.value["before"] == {"a": 1, "b": 2}
    assert found.value["many"] == {"a": 1, "b": 2, "c": 9}
    assert parse_yaml(b"none: {<<: [], a: 1}").value == {"none": {"a": 1}}


def test_aliases_are_copies() -> None:
    found = parse_yaml(b"a: &x {k: [1]}\nb: *x").value
    found["a"]["k"].append(2)
    assert found["b"] == {"k": [1]}


def test_the_last_of_duplicate_keys_counts_and_strictness_tells_each_line() -> None:
    found = parse_yaml(b"a: 1\nb:\n  c: 1\n  c: 2\na: 3\n1: x\n1: z\n")
    assert found.value == {"1": "z", "a": 3, "b": {"c": 2}}
    assert found.strict_error == (
        "yaml: unmarshal errors:\n"
        '  line 4: key "c" already set in map\n'
        '  line 5: key "a" already set in map\n'
        "  line 7: key 1 already set in map"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [unclosed\nb: c", "yaml: line 1: did not find expected ',' or ']'"),
        ("a:\n  - b\n c", "yaml: line 2: did not find expected key"),
        ("\n\ta: 1", "yaml: line 2: found character that cannot start any token"),
        ("a: b: c", "yaml: mapping values are not allowed in this context"),
        ("a: *x", "yaml: unknown anchor 'x' referenced"),
        ("a: &x [*x]", "yaml: anchor 'x' value contains itself"),
        ("a: {<<: 1}", "yaml: map merge requires map or sequence of maps as the value"),
        ("a: {<<: [1]}", "yaml: map merge requires map or sequence of maps as the value"),
        ("{{ x }}", 'yaml: invalid map key: map[interface {}]interface {}{"x":interface {}(nil)}'),
        ("? [a, 1]\n: b", 'yaml: invalid map key: []interface {}{"a", 1}'),
        ("a: \x01", "yaml: control characters are not allowed"),
        ("!!int x", "yaml: cannot decode !!str `x` as a !!int"),
        ("!!binary '='", "yaml: !!binary value contains invalid base64 data"),
        ("a: .nan", "json: unsupported value: NaN"),
        ("a: -.inf", "json: unsupported value: -Inf"),
        ("~: a", 'unsupported map key of type: %!s(<nil>), key: <nil>, value: "a"'),
    ],
)
def test_bad_text_is_refused_in_gos_words(text: str, message: str) -> None:
    with pytest.raises(YamlError) as caught:
        parse_yaml(text.encode())
    assert str(caught.value) == message


def test_a_small_text_cannot_become_a_huge_value() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 10)}]" for at in range(1, 10)]
    with pytest.raises(YamlError, match="document contains excessive aliasing"):
        parse_yaml("\n".join(lines).encode())


@pytest.mark.parametrize("text", ["[" * 5000, "- " * 5000 + "x"])
def test_text_that_is_too_deep_is_refused(text: str) -> None:
    with pytest.raises(YamlError):
        parse_yaml(text.encode())


def test_text_is_written_as_upstream_prints_it() -> None:
    value = {
        "kind": "Status",
        "code": 404,
        "metadata": {},
        "items": [],
        "nothing": None,
        "on": False,
        "message": 'configmaps "none" not found',
        "list": [{"b": [1, 2.5], "a": "x"}, ["y"]],
        "data": {
            "lines": "line1\nline2\n",
            "cut": "a\nb",
            "kept": "a\n\n",
            "time": "2020-01-01T00:00:00Z",
            "yes": "no",
            "empty": "",
            "spaced": " x",
            "dash": "- a",
            "key10": "1",
            "key9": "1:30",
        },
    }
    assert emit_yaml(value).decode() == (
        "code: 404\n"
        "data:\n"
        "  cut: |-\n    a\n    b\n"
        "  dash: '- a'\n"
        '  empty: ""\n'
        "  kept: |+\n    a\n\n"
        '  key9: "1:30"\n'
        '  key10: "1"\n'
        "  lines: |\n    line1\n    line2\n"
        "  spaced: ' x'\n"
        '  time: "2020-01-01T00:00:00Z"\n'
        '  "yes": "no"\n'
        "items: []\n"
        "kind: Status\n"
        "list:\n- a: x\n  b:\n  - 1\n  - 2.5\n- - \"y\"\n"
        'message: configmaps "none" not found\n'
        "metadata: {}\n"
        "nothing: null\n"
        '"on": false\n'
    )  # fmt: skip


def test_a_text_that_ends_in_line_breaks_is_not_closed() -> None:
    assert emit_yaml({"a": "x\n\n"}) == b"a: |+\n  x\n\n"


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1.5, "1.5"),
        (1234567.5, "1.2345675e+06"),
        (1e20, "1e+20"),
        (0.00001, "1e-05"),
        (-0.25, "-0.25"),
        (100000.5, "100000.5"),
    ],
)
def test_floats_are_written_as_strconv_does(number: float, text: str) -> None:
    assert emit_yaml({"a": number}) == f"a: {text}\n".encode()


@pytest.mark.parametrize(
    "keys",
    [
        ["a1", "a2", "a10"],
        [".", "1", "a"],
        ["A", "a"],
        ["a", "ab"],
        ["a-", "a1", "aa"],
        ["a1", "a01"],
        ["a100", "a101"],
    ],
)
def test_keys_are_in_natural_order(keys: list[str]) -> None:
    written = emit_yaml(dict.fromkeys(reversed(keys), 0)).decode()
    assert [line.partition(":")[0].strip('"') for line in written.splitlines()] == keys


def test_of_a_number_and_a_string_that_are_one_key_in_json_the_last_counts() -> None:
    assert parse_yaml(b"{1: {a: b}, '1': [c]}").value == {"1": ["c"]}


def test_aliases_to_a_sequence_of_sequences_are_copies_all_the_way_down() -> None:
    found = parse_yaml(b"a: &x [[1, [2]], b]\nb: *x\nc: [*x]").value
    found["a"][0][1].append(3)
    assert found["b"] == [[1, [2]], "b"]
    assert found["c"] == [[[1, [2]], "b"]]


@settings(max_examples=150, deadline=None)
@given(st.recursive(st.sampled_from(["a", "1", "~", "'<<'", "<<", "!!str 1", "&x b", "*x"]), _in_flow, max_leaves=12))
def test_aliases_do_not_change_the_value(text: str) -> None:
    def outcome(suffix: str) -> Any:
        try:
            return parse_yaml(f"y: &x 0\nz: {text}\n{suffix}".encode())
        except YamlError as error:
            return str(error)

    assert outcome("# none") == outcome("# * none")


# Where letters come after digits, yaml.v2's comparison can go round in a circle.
NUMBERED = st.builds("{}{}".format, st.text(st.sampled_from("aB_-.~é"), max_size=3), st.integers(0, 200) | st.just(""))


@settings(max_examples=100, deadline=None)
@given(st.lists(NUMBERED, max_size=40, unique=True))
def test_many_keys_come_in_the_order_that_comparing_them_gives(keys: list[str]) -> None:
    assert in_natural_order(keys) == sorted(keys, key=cmp_to_key(_compare))


def test_many_keys_cost_not_much_more_in_any_order_than_in_the_right_one() -> None:
    keys = [f"k{at}" for at in range(10_000)]
    shuffled = random.Random(1).sample(keys, len(keys))
    assert emit_yaml(dict.fromkeys(shuffled, 0)) == emit_yaml(dict.fromkeys(keys, 0))
    assert _processor_time(shuffled) < 20 * _processor_time(keys)


def _processor_time(keys: list[str]) -> float:
    value, spent = dict.fromkeys(keys, 0), []
    for _ in range(3):
        began = time.thread_time()
        emit_yaml(value)
        spent.append(time.thread_time() - began)
    return min(spent)


@pytest.mark.parametrize(
    "text",
    [
        b"a: &s " + b"x" * 20_000 + b"\n" + b"".join(b"k%d: *s\n" % at for at in range(1_000)),
        b"a: &s ["
        + b"x" * 10_000
        + b", "
        + b"y" * 10_000
        + b"]\n"
        + b"".join(b"k%d: *s\n" % at for at in range(1_000)),
        b"a: &s {x: " + b"y" * 20_000 + b"}\nk: [" + b"*s, " * 1_000 + b"]\n",
        b"a: &s !!str " + b"x" * 20_000 + b"\n" + b"".join(b"k%d: *s\n" % at for at in range(1_000)),
    ],
    ids=["of a string", "of a list", "of a map", "of a tagged string"],
)
def test_aliases_may_not_multiply_a_long_string(text: bytes) -> None:
    with pytest.raises(YamlError, match="document contains excessive aliasing"):
        parse_yaml(text)


def test_aliases_of_long_strings_are_read_as_long_as_they_are_few() -> None:
    text = b"a: &s " + b"x" * 20_000 + b"\n" + b"".join(b"k%d: *s\n" % at for at in range(100))
    assert len(parse_yaml(text).value) == 101
