"""Google's C++ implementation of CEL and this one agree on expressions that mean the same to both.

Known disagreements, which are cel-go's behaviour here and are not generated: lists and maps with entries of different
types are refused, constants are evaluated when an expression is compiled, and time zones and formats differ.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from native_cel import EXTENSIONS

from pilothouse.machinery.cel.environment import Environment
from pilothouse.machinery.cel.program import Program

cel = pytest.importorskip("cel_expr_python.cel")

VARIABLES = ("a", "b", "s")
NATIVE = cel.NewEnv(config=cel.NewEnvConfigFromYaml(EXTENSIONS), variables=dict.fromkeys(VARIABLES, cel.Type("dyn")))
OURS = Environment(dict.fromkeys(VARIABLES, "dyn"), bindings=True)

numbers = st.sampled_from(["0", "1", "-3", "7", "9223372036854775807", "a", "b.n", "b.missing", "s.size()"])
texts = st.sampled_from(["''", "'x'", "'añb'", "s", "b.t"])


def binary(inner: st.SearchStrategy[str], signs: list[str]) -> st.SearchStrategy[str]:
    return st.tuples(inner, st.sampled_from(signs), inner).map(lambda it: f"({it[0]} {it[1]} {it[2]})")


arithmetic = st.recursive(numbers, lambda inner: binary(inner, ["+", "-", "*", "/", "%"]), max_leaves=5)
strings = st.one_of(
    texts,
    binary(texts, ["+"]),
    st.tuples(texts, arithmetic).map(lambda it: f"{it[0]}.substring({it[1]})"),
    st.tuples(texts, texts).map(lambda it: f"{it[0]}.replace({it[1]}, 'q')"),
    texts.map(lambda text: f"{text}.upperAscii()"),
)
comparisons = st.one_of(
    binary(arithmetic, ["<", "<=", ">", ">=", "==", "!="]),
    binary(strings, ["<", ">=", "==", "!="]),
    st.tuples(strings, strings).map(lambda it: f"{it[0]}.contains({it[1]})"),
    arithmetic.map(lambda number: f"({number} in b.list)"),
    arithmetic.map(lambda number: f"b.list.exists(x, x / {number} > 1)"),
    arithmetic.map(lambda number: f"b.list.all(x, x % {number} == 0)"),
    arithmetic.map(lambda number: f"(b.list.map(x, x + {number}).filter(y, y > 2).size() > 1)"),
    arithmetic.map(lambda number: f"(b.list[{number}] == 2)"),
    st.just("has(b.missing)"),
    st.just("b.?missing.hasValue()"),
)
conditions = st.recursive(
    comparisons,
    lambda inner: st.one_of(
        binary(inner, ["&&", "||", "=="]),
        inner.map(lambda it: f"!{it}"),
        st.tuples(inner, inner, inner).map(lambda it: f"({it[0]} ? {it[1]} : {it[2]})"),
    ),
    max_leaves=4,
)


@settings(max_examples=150, deadline=None)
@given(expression=st.one_of(arithmetic, strings, conditions), a=st.integers(-5, 5), text=st.text("añb x", max_size=4))
def test_both_find_the_same_value_or_both_fail(expression: str, a: int, text: str) -> None:
    native = NATIVE.compile(expression)
    variables: dict[str, Any] = {"a": a, "b": {"n": 2, "t": "xañ", "list": [1, 2, 3, 4]}, "s": text}
    ours = Program(OURS.compile(expression).program).run(variables)
    theirs = native.eval(NATIVE.Activation(variables))
    assert (ours.error is not None) is (theirs.type().name() == "ERROR")
    if ours.error is None:
        assert ours.value == theirs.plain_value()
        assert type(ours.value) is type(theirs.plain_value())
