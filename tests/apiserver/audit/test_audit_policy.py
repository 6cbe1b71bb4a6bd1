"""Audit policies: how much of which requests is logged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from pilothouse.apiserver.audit.policy import AuditPolicy, Level, RequestAuditConfig, read_policy
from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.authz.interface import Attributes


def asking(verb: str = "get", **asked: Any) -> Attributes:
    user = User("alice", groups=("staff", "system:authenticated"))
    resource = {"is_resource": True, "version": "v1", "resource": "pods", "namespace": "here", "name": "p"}
    return Attributes(user=user, verb=verb, **({**resource, **asked} if "path" not in asked else asked))


def level(rule: dict[str, Any], attributes: Attributes) -> Level:
    return AuditPolicy({"rules": [{"level": "Metadata", **rule}]}).decide(attributes).level


@pytest.mark.parametrize(
    ("rule", "asked", "matches"),
    [
        ({}, {}, True),
        ({"users": ["alice"]}, {}, True),
        ({"users": ["bob"]}, {}, False),
        ({"userGroups": ["staff"]}, {}, True),
        ({"userGroups": ["other"]}, {}, False),
        ({"verbs": ["list"]}, {}, False),
        ({"namespaces": ["here"]}, {}, True),
        ({"namespaces": [""]}, {}, False),
        ({"resources": [{"group": ""}]}, {}, True),
        ({"resources": [{"group": "apps"}]}, {}, False),
        ({"resources": [{"group": "*"}]}, {}, True),
        ({"resources": [{"resources": ["pods"]}]}, {}, True),
        ({"resources": [{"resources": ["pods"]}]}, {"subresource": "log"}, False),
        ({"resources": [{"resources": ["pods/log"]}]}, {"subresource": "log"}, True),
        ({"resources": [{"resources": ["pods/*"]}]}, {"subresource": "log"}, True),
        ({"resources": [{"resources": ["*/log"]}]}, {"subresource": "log"}, True),
        ({"resources": [{"resources": ["pods"], "resourceNames": ["q"]}]}, {}, False),
        ({"nonResourceURLs": ["/healthz*"]}, {"path": "/healthz/ping"}, True),
        ({"nonResourceURLs": ["/healthz"]}, {"path": "/healthz/ping"}, False),
        ({"nonResourceURLs": ["*"]}, {}, False),
        ({"resources": [{"group": ""}]}, {"path": "/healthz"}, False),
    ],
)
def test_a_rule_speaks_of_requests_that_match_all_it_says(
    rule: dict[str, Any], asked: dict[str, Any], matches: bool
) -> None:
    assert level(rule, asking(**asked)) is (Level.METADATA if matches else Level.NONE)


def test_the_first_rule_that_matches_decides() -> None:
    policy = AuditPolicy(
        {
            "omitStages": ["RequestReceived"],
            "omitManagedFields": True,
            "rules": [
                {"level": "None", "verbs": ["watch"]},
                {"level": "Request", "omitStages": ["Panic"], "omitManagedFields": False},
                {"level": "RequestResponse"},
            ],
        }
    )
    assert policy.decide(asking("watch")).level is Level.NONE
    assert policy.decide(asking()) == RequestAuditConfig(Level.REQUEST, frozenset(("RequestReceived", "Panic")))


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ({}, "rules[0].level: Required value"),
        ({"level": "All"}, 'rules[0].level: Unsupported value: "All"'),
        ({"level": "None", "omitStages": ["Begin"]}, "allowed stages are RequestReceived,ResponseStarted"),
        ({"level": "None", "nonResourceURLs": ["healthz"]}, "must begin with a '/' character"),
        ({"level": "None", "nonResourceURLs": ["/a*/b"]}, "must be the final character of the rule"),
        ({"level": "None", "nonResourceURLs": ["/a"], "namespaces": ["b"]}, "rules cannot apply to both"),
        ({"level": "None", "resources": [{"resourceNames": ["a"]}]}, "requires at least one resource"),
        ({"level": "None", "resources": [{"group": "a/v1"}]}, "rules[0].resources.group"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(tmp_path: Path, rule: dict[str, Any], why: str) -> None:
    path = tmp_path / "policy.yaml"
    path.write_bytes(orjson.dumps({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [rule]}))
    with pytest.raises(ValueError) as refused:
        read_policy(path)
    assert why in str(refused.value)


@pytest.mark.parametrize("text", ["", "kind: Policy\napiVersion: audit.k8s.io/v1\n", "kind: Other\n", "a: ["])
def test_a_file_without_a_policy_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(text)
    with pytest.raises(ValueError):
        read_policy(path)
