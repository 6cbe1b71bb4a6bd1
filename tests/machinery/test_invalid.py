"""The refusal of an object that breaks rules: it names each error, but never more than a bounded number of them."""

from __future__ import annotations

from pilothouse.machinery.errors import MOST_ERRORS, Invalid
from pilothouse.machinery.field import Path, invalid
from pilothouse.machinery.names import GroupKind

POD = GroupKind("", "Pod")


def test_an_error_that_occurs_twice_is_a_cause_twice_and_stands_in_the_message_once() -> None:
    error = invalid(Path("spec"), "a", "must be b")
    refusal = Invalid.of(POD, "web", [error, error])
    assert str(refusal) == 'Pod "web" is invalid: spec: Invalid value: "a": must be b'
    assert len((refusal.details or {})["causes"]) == 2


def test_a_refusal_of_very_many_errors_says_how_many_it_leaves_out() -> None:
    errors = [invalid(Path("spec").index(at), "a", "must be b") for at in range(MOST_ERRORS + 7)]
    refusal = Invalid.of(POD, "web", errors)
    assert str(refusal).endswith(f'spec[{MOST_ERRORS - 1}]: Invalid value: "a": must be b] and 7 more errors')
    assert len((refusal.details or {})["causes"]) == MOST_ERRORS
