"""Wrong constants and mixed lists are refused when they are compiled, where they stand and in cel-go's words."""

from __future__ import annotations

import pytest

from pilothouse.machinery.cel.environment import CompilationFailed, Environment

_ENVIRONMENT = Environment({"object": "dyn"})


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


@pytest.mark.parametrize(
    "expression",
    [
        "[object.b, object.a].size() == {'a': [], 'b': [1]}.size()",
        "'%s %d'.format(['a', 1]) == {1: 'a', 2: 'b'}[1]",
        "[1, 2].map(x, [x, x + 1]).exists(y, y[0] in [1, 2])",
    ],
)
def test_entries_of_one_type_or_of_any_are_taken(expression: str) -> None:
    assert _ENVIRONMENT.compile(expression).type == "bool"


@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        (
            "object.a in [1, 'a']",
            "1:17: expected type 'int' but found 'string'\n | object.a in [1, 'a']\n | ................^",
        ),
        ("{'a': 1, 'b': [2]} == object", "1:15: expected type 'int' but found 'list(int)'"),
        ("{'a': 1, 2: 2} == object", "1:10: expected type 'string' but found 'int'"),
    ],
)
def test_entries_of_different_types_are_refused(expression: str, complaint: str) -> None:
    with pytest.raises(CompilationFailed) as refused:
        _ENVIRONMENT.compile(expression)
    assert str(refused.value).startswith(f"ERROR: <input>:{complaint}")
    assert str(refused.value).count("ERROR") == 1
