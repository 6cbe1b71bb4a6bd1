"""YAML text as Go's yaml.v3 writes it."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.machinery.codec.yaml_v3 import yaml_v3


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("atomic", "atomic"),
        ("yes", "yes"),
        ("has(self.a) && self.b == 'c'", "has(self.a) && self.b == 'c'"),
        ("a:b", "a:b"),
        ("", '""'),
        ("true", '"true"'),
        ("10", '"10"'),
        ("2001-01-01", '"2001-01-01"'),
        ("a: b", "'a: b'"),
        ("!self.a", "'!self.a'"),
        ("'a' in self", "'''a'' in self'"),
        ("a\tb", '"a\\tb"'),
        ("\U0001f600", '"\\U0001F600"'),
        ("a\nb", "|-\n    a\n    b"),
        ("a\nb\n", "|\n    a\n    b"),
        ("a \nb", '"a \\nb"'),
        (80, "80"),
        (True, "true"),
        ({}, "{}"),
        ([], "[]"),
        (["a", "b"], "- a\n- b"),
        ([{"group": "", "kind": "A"}, {"kind": "B"}], '- group: ""\n  kind: A\n- kind: B'),
        ({"b": {"a": ["x", ["y"]]}}, "b:\n    a:\n        - x\n        - - y"),
        ([{"a": {"b": 1}, "c": "d\ne"}], "- a:\n    b: 1\n  c: |-\n    d\n    e"),
    ],
)
def test_a_value_is_written_as_go_writes_it(value: Any, text: str) -> None:
    assert yaml_v3(value) == f"{text}\n"
