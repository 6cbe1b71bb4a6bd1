"""Wrong constants are refused when an expression is compiled, at their place and in cel-go's words."""

from __future__ import annotations

import pytest

from pilothouse.machinery.cel.environment import CompilationFailed, environment

_ENVIRONMENT = environment({"object": "dyn"}, types=(), fields=())


@pytest.mark.parametrize(
    "expression",
    [
        "object.matches('^(a+)+$')",
        "object.matches(object)",
        "duration('5m') < duration(object)",
        "timestamp('2020-01-01T00:00:00Z') < timestamp(5)",
        "'duration(' == 'x'",
    ],
)
def test_constants_that_are_right_or_unknown_are_taken(expression: str) -> None:
    assert _ENVIRONMENT.compile(expression).type in ("bool", "dyn")


@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        ("'a'.matches('(')", "1:13: invalid matches argument\n | 'a'.matches('(')\n | ............^"),
        ("duration('soon') > object", "1:10: invalid duration argument\n | duration('soon') > object\n | .........^"),
        (
            "true &&\n object.all(x, x < timestamp('?'))",
            f"2:30: invalid timestamp argument\n |  object.all(x, x < timestamp('?'))\n | {'.' * 29}^",
        ),
    ],
)
def test_a_wrong_constant_is_refused_where_it_stands(expression: str, complaint: str) -> None:
    with pytest.raises(CompilationFailed) as refused:
        _ENVIRONMENT.compile(expression)
    assert str(refused.value) == f"ERROR: <input>:{complaint}"


def test_all_wrong_constants_are_named_in_their_order() -> None:
    with pytest.raises(CompilationFailed) as refused:
        _ENVIRONMENT.compile("duration('b') < duration('c') || 'a'.matches('[')")
    assert str(refused.value).count("invalid duration argument") == 2
    assert str(refused.value).rindex("duration argument") < str(refused.value).index("matches argument")
