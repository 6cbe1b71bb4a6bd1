"""Tolerations tolerate the taints that upstream's do."""

from __future__ import annotations

import pytest

from pilothouse.kinds.tolerations import (
    NO_EXECUTE,
    first_untolerated,
    matching_tolerations,
    same_taint,
    taint_text,
    tolerates,
    with_toleration,
)
from pilothouse.machinery.objects import Json

TAINT: Json = {"key": "gpu", "value": "5", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("toleration", "answer"),
    [
        ({"key": "gpu", "operator": "Equal", "value": "5", "effect": "NoSchedule"}, True),
        ({"key": "gpu", "value": "5"}, True),
        ({"key": "gpu", "value": "6"}, False),
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "cpu", "operator": "Exists"}, False),
        ({"key": "gpu", "operator": "Sometimes"}, False),
    ],
)
def test_a_toleration_needs_key_effect_and_value(toleration: Json, answer: bool) -> None:
    assert tolerates(toleration, TAINT) is answer


@pytest.mark.parametrize(
    ("operator", "value", "answer"),
    [
        ("Lt", "6", True),
        ("Lt", "5", False),
        ("Gt", "4", True),
        ("Gt", "-4", True),
        ("Gt", "04", False),
        ("Lt", "", False),
    ],
)
def test_comparisons_are_of_integers_and_only_where_they_are_enabled(operator: str, value: str, answer: bool) -> None:
    toleration = {"key": "gpu", "operator": operator, "value": value}
    assert tolerates(toleration, TAINT, comparisons=True) is answer
    assert not tolerates(toleration, TAINT)
    assert not tolerates(toleration, {"key": "gpu", "value": "many"}, comparisons=True)


def test_the_first_taint_that_nothing_tolerates_is_found_among_those_with_the_effects() -> None:
    soft, hard = {"key": "a", "effect": "PreferNoSchedule"}, {"key": "b", "effect": "NoExecute"}
    assert first_untolerated([soft, TAINT, hard], []) is TAINT
    assert first_untolerated([soft, TAINT, hard], [{"key": "gpu", "operator": "Exists"}]) is hard
    assert first_untolerated([soft, TAINT], [], {NO_EXECUTE}) is None


def test_matching_tolerations_are_one_for_each_taint() -> None:
    other = {"key": "b", "effect": "NoExecute"}
    everything: Json = {"operator": "Exists"}
    assert matching_tolerations([TAINT, other], [everything]) == [everything, everything]
    assert matching_tolerations([TAINT, other], [{"key": "b"}]) is None
    assert matching_tolerations([], []) == []


def test_a_toleration_replaces_its_like() -> None:
    old, new = ({"key": "a", "operator": "Exists", "tolerationSeconds": seconds} for seconds in (1, 2))
    assert with_toleration([old, TAINT], new) == [new, TAINT]
    assert with_toleration([TAINT], new) == [TAINT, new]


def test_taints_are_one_by_key_and_effect_and_print_themselves() -> None:
    assert same_taint(TAINT, {**TAINT, "value": "6"})
    assert not same_taint(TAINT, {**TAINT, "effect": "NoExecute"})
    assert taint_text({"key": "a", "value": "b"}) == "a=b:"
    assert taint_text({"key": "a", "effect": "NoExecute"}) == "a:NoExecute"
