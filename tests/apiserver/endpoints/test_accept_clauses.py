"""The order in which the clauses of an Accept header are tried."""

from __future__ import annotations

import pytest

from pilothouse.apiserver.endpoints.negotiation import parse_accept


@pytest.mark.parametrize(
    ("header", "order"),
    [
        ("a/a;q=0.1, a/b", ["a/b", "a/a"]),
        ("*/*, a/b;q=0.5", ["a/b", "*/*"]),
        ("a/*, a/b", ["a/b", "a/*"]),
        ("*, a/b/c, a, a/", ["*/*"]),
        ("a/a;q=x, a/b;q=0.1", ["a/b", "a/a"]),
    ],
)
def test_clauses_are_tried_in_upstreams_order(header: str, order: list[str]) -> None:
    assert [f"{clause.type}/{clause.subtype}" for clause in parse_accept(header)] == order
