"""Values print as Go's fmt package prints them."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.machinery.gofmt import go_string, go_type, go_value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": [1, "x y"], "a": {"c": None}}, "map[a:map[c:<nil>] b:[1 x y]]"),
        (True, "true"),
        (1.0, "1"),
        (1.5, "1.5"),
        (-0.25, "-0.25"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (100000.0, "100000"),
        (1000000.0, "1e+06"),
        (123456789.5, "1.234567895e+08"),
        (0.0, "0"),
        ([], "[]"),
        ({}, "map[]"),
    ],
)
def test_a_value_prints_as_percent_v(value: Any, text: str) -> None:
    assert go_value(value) == text


def test_types_have_their_go_names() -> None:
    values: list[Any] = [None, {}, [], "", 1, 1.0, True]
    assert list(map(go_type, values)) == [
        "<nil>",
        "map[string]interface {}",
        "[]interface {}",
        "string",
        "int64",
        "float64",
        "bool",
    ]


def test_a_value_that_is_no_string_is_complained_of_by_percent_s() -> None:
    assert [go_string(value) for value in ("x", 5, None)] == ["x", "%!s(int64=5)", "%!s(<nil>)"]
