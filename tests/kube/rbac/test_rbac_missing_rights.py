"""What a writer of rules does not hold: the quick answer is the plain one, however many rights a rule stands for."""

from __future__ import annotations

import time
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.kube.rbac import missing_rights as module
from pilothouse.kube.rbac.missing_rights import missing_rights
from pilothouse.kube.rbac.rules import PolicyRule, compacted, uncovered


def some(*words: str) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(words), max_size=3, unique=True).map(tuple)


VERBS = some("get", "list", "*")
RULES = st.builds(
    PolicyRule,
    VERBS,
    some("", "apps", "*"),
    some("pods", "pods/log", "*/log", "nodes", "*", "pods/*"),
    some("a", "b"),
) | st.builds(PolicyRule, VERBS, paths=some("/", "/a", "/a/b", "/a*", "/a/*", "*", "/a**"))
"""And rules that say nothing."""


def shown(rules: Iterable[PolicyRule]) -> set[str]:
    return {str(rule) for rule in rules}


@settings(max_examples=150, deadline=None)
@given(st.lists(RULES, max_size=4), st.lists(RULES, max_size=3))
def test_what_is_missing_is_what_is_missing_right_by_right(owned: list[PolicyRule], wanted: list[PolicyRule]) -> None:
    missing = missing_rights(owned, wanted)
    assert missing.is_all
    assert shown(missing.rules) == shown(compacted(uncovered(owned, wanted)))


@settings(max_examples=100, deadline=None)
@given(st.lists(RULES, max_size=4), st.lists(RULES, max_size=2))
def test_own_rules_that_are_looked_at_apart_cover_no_less(owned: list[PolicyRule], wanted: list[PolicyRule]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK", 1)
        apart = missing_rights(owned, wanted)
    assert shown(apart.rules) == shown(compacted(uncovered(owned, wanted)))


def words(prefix: str, count: int) -> tuple[str, ...]:
    return tuple(f"{prefix}{at}" for at in range(count))


def huge(side: int) -> PolicyRule:
    return PolicyRule(words("v", side), words("g", side), words("r", side), words("n", side))


def seconds(owned: list[PolicyRule], wanted: list[PolicyRule]) -> float:
    began = time.thread_time()
    missing_rights(owned, wanted)
    return time.thread_time() - began


def test_a_rule_for_billions_of_rights_is_judged_at_once() -> None:
    wanted = huge(2000)
    missing = missing_rights([PolicyRule(("get",), ("",), ("pods",))], [wanted])
    assert missing.rules
    assert not missing.is_all
    assert sum(len(str(rule)) for rule in missing.rules) < 1 << 20
    assert seconds([PolicyRule(("get",), ("",), ("pods",))], [wanted]) < 10


def test_a_rule_for_billions_of_rights_that_are_held_by_many_rules_is_judged_at_once() -> None:
    wanted = huge(300)
    held = [wanted.with_verbs([verb]) for verb in wanted.verbs]
    assert missing_rights(held, [wanted]).rules == []
    assert missing_rights(held[1:], [wanted]).rules[0].verbs == (wanted.verbs[0],)
    assert seconds(held, [wanted]) < 10


def test_many_rules_against_many_rules_are_judged_at_once() -> None:
    rules = [PolicyRule(("get",), ("",), ("pods",), (f"n{at}",)) for at in range(5000)]
    assert missing_rights(rules, rules).rules == []
    assert seconds(rules, rules) < 10
