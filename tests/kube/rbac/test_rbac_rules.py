"""What rules allow, and whether some rules allow all that others do."""

from __future__ import annotations

import pytest

from pilothouse.kube.rbac.rules import PolicyRule, Role, compacted, uncovered

READ_PODS = PolicyRule(("get", "list"), ("",), ("pods",))
EACH_VERB = [PolicyRule((verb,), ("",), ("pods",)) for verb in READ_PODS.verbs]


@pytest.mark.parametrize(
    ("resources", "resource", "subresource", "allowed"),
    [
        (("pods",), "pods", "", True),
        (("pods",), "pods", "log", False),
        (("pods/log",), "pods", "log", True),
        (("pods/log",), "pods", "", False),
        (("*",), "pods", "log", True),
        (("*/log",), "pods", "log", True),
        (("*/log",), "pods", "", False),
        (("*/log",), "pods", "exec", False),
        (("pods/*",), "pods", "log", False),
    ],
)
def test_a_rule_names_resources_and_subresources(
    resources: tuple[str, ...], resource: str, subresource: str, allowed: bool
) -> None:
    role = Role([PolicyRule(("get",), ("",), resources)])
    assert bool(list(role.matching("get", "", resource, subresource))) is allowed


@pytest.mark.parametrize(
    ("rule", "verb", "group", "allowed"),
    [
        (PolicyRule(("get",), ("apps",), ("x",)), "get", "apps", True),
        (PolicyRule(("get",), ("apps",), ("x",)), "list", "apps", False),
        (PolicyRule(("get",), ("apps",), ("x",)), "get", "", False),
        (PolicyRule(("*",), ("apps",), ("x",)), "list", "apps", True),
        (PolicyRule(("get",), ("*",), ("x",)), "get", "batch", True),
        (PolicyRule(("get",), ("a*",), ("x",)), "get", "apps", False),
    ],
)
def test_a_star_stands_for_all_verbs_and_all_groups(rule: PolicyRule, verb: str, group: str, allowed: bool) -> None:
    assert bool(list(Role([rule]).matching(verb, group, "x", ""))) is allowed


@pytest.mark.parametrize(
    ("own", "path", "allowed"),
    [
        ("/healthz", "/healthz", True),
        ("/healthz", "/healthz/etcd", False),
        ("/healthz/*", "/healthz/etcd", True),
        ("/healthz/*", "/healthz", False),
        ("*", "/anything", True),
        ("/a*c", "/abc", False),
    ],
)
def test_a_path_may_end_with_a_star(own: str, path: str, allowed: bool) -> None:
    role = Role([PolicyRule(("get",), paths=(own,))])
    assert role.allows_path("get", path) is allowed
    assert role.allows_path("post", path) is False


def test_a_rule_is_shown_as_go_shows_it() -> None:
    rule = PolicyRule(("get", "*"), ("", "apps"), ("pods",), names=('a"b',))
    assert str(rule) == r'{APIGroups:["" "apps"], Resources:["pods"], ResourceNames:["a\"b"], Verbs:["get" "*"]}'
    assert str(PolicyRule(("get",), paths=("/x",))) == '{NonResourceURLs:["/x"], Verbs:["get"]}'


def test_a_rule_survives_the_way_through_json() -> None:
    rule = PolicyRule(("get",), ("",), ("pods",), ("web",))
    assert PolicyRule.of(rule.as_json()) == rule
    assert list(rule.as_json()) == ["verbs", "apiGroups", "resources", "resourceNames"]


@pytest.mark.parametrize(
    ("owned", "wanted", "lacking"),
    [
        ([READ_PODS], READ_PODS, []),
        ([READ_PODS], PolicyRule(("get", "delete"), ("",), ("pods",)), [PolicyRule(("delete",), ("",), ("pods",))]),
        ([PolicyRule(("get",), ("",), ("pods",)), PolicyRule(("list",), ("",), ("pods",))], READ_PODS, []),
        ([PolicyRule(("*",), ("*",), ("*",))], PolicyRule(("get",), ("apps",), ("x/scale",), ("web",)), []),
        ([READ_PODS], PolicyRule(("*",), ("",), ("pods",)), [PolicyRule(("*",), ("",), ("pods",))]),
        ([PolicyRule(("get",), ("",), ("*/log",))], PolicyRule(("get",), ("",), ("pods/log",)), []),
        (
            [PolicyRule(("get",), ("",), ("pods",), ("a",))],
            READ_PODS,
            EACH_VERB,
        ),
        ([READ_PODS], PolicyRule(("get",), ("",), ("pods",), ("a",)), []),
        (
            [PolicyRule(("get",), ("",), ("pods",), ("a",))],
            PolicyRule(("get",), ("",), ("pods",), ("a", "b")),
            [PolicyRule(("get",), ("",), ("pods",), ("b",))],
        ),
        ([PolicyRule(("get",), paths=("/healthz*",))], PolicyRule(("get",), paths=("/healthz/etcd",)), []),
        (
            [PolicyRule(("get",), paths=("/a",))],
            PolicyRule(("get",), paths=("/a", "/b")),
            [PolicyRule(("get",), paths=("/b",))],
        ),
        (
            [PolicyRule(("*",), ("*",), ("*",))],
            PolicyRule(("get",), paths=("/a",)),
            [PolicyRule(("get",), paths=("/a",))],
        ),
        ([PolicyRule(("*",), paths=("*",))], READ_PODS, EACH_VERB),
    ],
)
def test_what_is_not_covered_is_named_part_by_part(
    owned: list[PolicyRule], wanted: PolicyRule, lacking: list[PolicyRule]
) -> None:
    assert uncovered(owned, [wanted]) == lacking


def test_parts_that_differ_by_verb_only_are_shown_together() -> None:
    parts = [
        PolicyRule(("get",), ("",), ("pods",)),
        PolicyRule(("get",), ("",), ("secrets",)),
        PolicyRule(("list",), ("",), ("pods",)),
        PolicyRule(("list",), ("",), ("pods",), ("a",)),
        PolicyRule(("get",), paths=("/x",)),
        PolicyRule(("post",), paths=("/x",)),
    ]
    assert compacted(parts) == [
        PolicyRule(("get", "list"), ("",), ("pods",)),
        PolicyRule(("get",), ("",), ("secrets",)),
        PolicyRule(("list",), ("",), ("pods",), ("a",)),
        PolicyRule(("get",), paths=("/x",)),
        PolicyRule(("post",), paths=("/x",)),
    ]
