"""The rules of flow schemas, one by one: subjects, resources, namespaces and paths."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.flowcontrol.matching import FlowSchema
from pilothouse.apiserver.request_info import RequestInfo
from pilothouse.machinery.objects import Json

ROBOT = User("system:serviceaccount:build:robot", groups=("system:serviceaccounts", "dev"))
ALICE = User("alice", groups=("dev",))
EVERYTHING: Json = {
    "verbs": ["*"],
    "apiGroups": ["*"],
    "resources": ["*"],
    "namespaces": ["*"],
    "clusterScope": True,
}


def schema(by: str = "", **rule: Any) -> FlowSchema:
    spec: Json = {"priorityLevelConfiguration": {"name": "level"}, "rules": [rule]}
    if by:
        spec["distinguisherMethod"] = {"type": by}
    return FlowSchema({"metadata": {"name": "s", "uid": "u"}, "spec": spec})


def on_pods(**fields: Any) -> RequestInfo:
    asked = {"verb": "get", "version": "v1", "resource": "pods", "namespace": "build"} | fields
    return RequestInfo(is_resource=True, path="/", **asked)


def account(name: str, namespace: str = "build") -> Json:
    return {"kind": "ServiceAccount", "serviceAccount": {"namespace": namespace, "name": name}}


def of_kind(kind: str, name: str) -> Json:
    return {"kind": kind, kind.lower(): {"name": name}}


@pytest.mark.parametrize(
    ("subject", "user", "matches"),
    [
        (of_kind("User", "alice"), ALICE, True),
        (of_kind("User", "bob"), ALICE, False),
        (of_kind("User", "*"), ALICE, True),
        (of_kind("Group", "dev"), ALICE, True),
        (of_kind("Group", "ops"), ALICE, False),
        (of_kind("Group", "*"), User("nobody"), True),
        (account("robot"), ROBOT, True),
        (account("other"), ROBOT, False),
        (account("robot", "elsewhere"), ROBOT, False),
        (account("*"), ROBOT, True),
        (account("*", "elsewhere"), ROBOT, False),
        (account("*", "buil"), ROBOT, False),
        (account("*"), ALICE, False),
        (account("robot"), User("robot"), False),
        ({"kind": "ServiceAccount"}, ROBOT, False),
        ({"kind": "User"}, ALICE, False),
        ({"kind": "Group"}, ALICE, False),
        ({"kind": "Robot", "serviceAccount": {"namespace": "build", "name": "robot"}}, ROBOT, False),
    ],
)
def test_a_rule_is_for_its_subjects(subject: Json, user: User, matches: bool) -> None:
    rule = schema(subjects=[of_kind("User", "somebody else"), subject], resourceRules=[EVERYTHING])
    assert rule.matches(user, on_pods()) is matches


def test_a_rule_without_subjects_is_for_nobody() -> None:
    assert not schema(resourceRules=[EVERYTHING]).matches(ALICE, on_pods())


@pytest.mark.parametrize(
    ("narrowed", "asked", "matches"),
    [
        ({}, {}, True),
        ({"verbs": ["list", "get"]}, {}, True),
        ({"verbs": ["list"]}, {}, False),
        ({"resources": ["pods"]}, {}, True),
        ({"resources": ["pods"]}, {"subresource": "status"}, False),
        ({"resources": ["pods/status"]}, {"subresource": "status"}, True),
        ({"resources": ["pods/status"]}, {}, False),
        ({"apiGroups": [""]}, {}, True),
        ({"apiGroups": ["apps"]}, {}, False),
        ({"apiGroups": ["apps"]}, {"group": "apps"}, True),
        ({"namespaces": ["build"]}, {}, True),
        ({"namespaces": ["other"]}, {}, False),
        ({"clusterScope": False}, {}, True),
        ({"clusterScope": False}, {"namespace": ""}, False),
        ({"namespaces": None}, {"namespace": ""}, True),
        ({"namespaces": None}, {}, False),
    ],
)
def test_a_resource_rule_is_for_what_it_names(narrowed: Json, asked: Json, matches: bool) -> None:
    rule = schema(subjects=[of_kind("User", "*")], resourceRules=[EVERYTHING | narrowed])
    assert rule.matches(ALICE, on_pods(**asked)) is matches


@pytest.mark.parametrize(
    ("url", "path", "matches"),
    [
        ("*", "/healthz", True),
        ("/healthz", "/healthz", True),
        ("/healthz", "/healthz/etcd", True),
        ("/healthz", "/healthzz", False),
        ("/healthz/*", "/healthz/etcd", True),
        ("/healthz/*", "/healthz", False),
        ("/healthz", "/livez", False),
    ],
)
def test_a_path_rule_is_for_its_path_and_what_is_below(url: str, path: str, matches: bool) -> None:
    rule = schema(subjects=[of_kind("User", "*")], nonResourceRules=[{"verbs": ["get"], "nonResourceURLs": [url]}])
    asked = RequestInfo(is_resource=False, path=path, verb="get")
    assert rule.matches(ALICE, asked) is matches
    assert not rule.matches(ALICE, RequestInfo(is_resource=False, path=path, verb="post"))


def test_rules_for_paths_are_not_for_resources_and_the_other_way_round() -> None:
    everybody = [of_kind("User", "*")]
    path = RequestInfo(is_resource=False, path="/healthz", verb="get")
    assert not schema(subjects=everybody, resourceRules=[EVERYTHING]).matches(ALICE, path)
    paths = schema(subjects=everybody, nonResourceRules=[{"verbs": ["*"], "nonResourceURLs": ["*"]}])
    assert not paths.matches(ALICE, on_pods())


@pytest.mark.parametrize(("by", "flow"), [("ByUser", "alice"), ("ByNamespace", "build"), ("", "")])
def test_flows_are_told_apart_as_the_schema_says(by: str, flow: str) -> None:
    assert schema(by).flow(ALICE, on_pods()) == flow
