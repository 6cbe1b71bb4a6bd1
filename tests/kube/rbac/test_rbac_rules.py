"""What rules allow, and whether some rules allow all that others do."""

from __future__ import annotations

import pytest

from pilothouse.kube.rbac.covering import compacted, uncovered
from pilothouse.kube.rbac.rules import Role, Rule

READ_PODS = Rule(("get", "list"), ("",), ("pods",))
EACH_VERB = [Rule((verb,), ("",), ("pods",)) for verb in READ_PODS.verbs]


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
    role = Role([Rule(("get",), ("",), resources)])
    assert bool(list(role.matching("get", "", resource, subresource))) is allowed


@pytest.mark.parametrize(
    ("rule", "verb", "group", "allowed"),
    [
        (Rule(("get",), ("apps",), ("x",)), "get", "apps", True),
        (Rule(("get",), ("apps",), ("x",)), "list", "apps", False),
        (Rule(("get",), ("apps",), ("x",)), "get", "", False),
        (Rule(("*",), ("apps",), ("x",)), "list", "apps", True),
        (Rule(("get",), ("*",), ("x",)), "get", "batch", True),
        (Rule(("get",), ("a*",), ("x",)), "get", "apps", False),
    ],
)
def test_a_star_stands_for_all_verbs_and_all_groups(rule: Rule, verb: str, group: str, allowed: bool) -> None:
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
    role = Role([Rule(("get",), paths=(own,))])
    assert role.allows_path("get", path) is allowed
    assert role.allows_path("post", path) is False


def test_a_rule_is_shown_as_go_shows_it() -> None:
    rule = Rule(("get", "*"), ("", "apps"), ("pods",), names=('a"b',))
    assert str(rule) == r'{APIGroups:["" "apps"], Resources:["pods"], ResourceNames:["a\"b"], Verbs:["get" "*"]}'
    assert str(Rule(("get",), paths=("/x",))) == '{NonResourceURLs:["/x"], Verbs:["get"]}'


def test_a_rule_survives_the_way_through_json() -> None:
    rule = Rule(("get",), ("",), ("pods",), ("web",))
    assert Rule.of(rule.as_json()) == rule
    assert list(rule.as_json()) == ["verbs", "apiGroups", "resources", "resourceNames"]


@pytest.mark.parametrize(
    ("owned", "wanted", "lacking"),
    [
        ([READ_PODS], READ_PODS, []),
        ([READ_PODS], Rule(("get", "delete"), ("",), ("pods",)), [Rule(("delete",), ("",), ("pods",))]),
        ([Rule(("get",), ("",), ("pods",)), Rule(("list",), ("",), ("pods",))], READ_PODS, []),
        ([Rule(("*",), ("*",), ("*",))], Rule(("get",), ("apps",), ("x/scale",), ("web",)), []),
        ([READ_PODS], Rule(("*",), ("",), ("pods",)), [Rule(("*",), ("",), ("pods",))]),
        ([Rule(("get",), ("",), ("*/log",))], Rule(("get",), ("",), ("pods/log",)), []),
        (
            [Rule(("get",), ("",), ("pods",), ("a",))],
            READ_PODS,
            EACH_VERB,
        ),
        ([READ_PODS], Rule(("get",), ("",), ("pods",), ("a",)), []),
        (
            [Rule(("get",), ("",), ("pods",), ("a",))],
            Rule(("get",), ("",), ("pods",), ("a", "b")),
            [Rule(("get",), ("",), ("pods",), ("b",))],
        ),
        ([Rule(("get",), paths=("/healthz*",))], Rule(("get",), paths=("/healthz/etcd",)), []),
        ([Rule(("get",), paths=("/a",))], Rule(("get",), paths=("/a", "/b")), [Rule(("get",), paths=("/b",))]),
        ([Rule(("*",), ("*",), ("*",))], Rule(("get",), paths=("/a",)), [Rule(("get",), paths=("/a",))]),
        ([Rule(("*",), paths=("*",))], READ_PODS, EACH_VERB),
    ],
)
def test_what_is_not_covered_is_named_part_by_part(owned: list[Rule], wanted: Rule, lacking: list[Rule]) -> None:
    assert uncovered(owned, [wanted]) == lacking


def test_parts_that_differ_by_verb_only_are_shown_together() -> None:
    parts = [
        Rule(("get",), ("",), ("pods",)),
        Rule(("get",), ("",), ("secrets",)),
        Rule(("list",), ("",), ("pods",)),
        Rule(("list",), ("",), ("pods",), ("a",)),
        Rule(("get",), paths=("/x",)),
        Rule(("post",), paths=("/x",)),
    ]
    assert compacted(parts) == [
        Rule(("get", "list"), ("",), ("pods",)),
        Rule(("get",), ("",), ("secrets",)),
        Rule(("list",), ("",), ("pods",), ("a",)),
        Rule(("get",), paths=("/x",)),
        Rule(("post",), paths=("/x",)),
    ]
