"""Policies in files, in both formats, and what they allow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.authz.interface import Answer, Attributes, Decision, NonResourceRule, ResourceRule
from pilothouse.kube.abac import ABACAuthorizer, read_policies

ALICE = User("alice", groups=("devs", "system:authenticated"))
STRANGER = User("system:anonymous", groups=("system:unauthenticated",))


def policy(**spec: Any) -> str:
    shown = {"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": spec}
    return orjson.dumps(shown).decode()


def authorizer(folder: Path, *lines: str) -> ABACAuthorizer:
    file = folder / "policies.jsonl"
    file.write_text("\n".join(lines))
    return ABACAuthorizer(read_policies(file))


async def allowed(abac: ABACAuthorizer, user: User, verb: str, **rest: Any) -> bool:
    return (await abac.authorize(Attributes(user, verb, **rest))).decision is Decision.ALLOW


PODS = {"is_resource": True, "resource": "pods", "namespace": "ns"}


async def test_a_policy_is_for_its_user_its_resource_and_its_verbs(tmp_path: Path) -> None:
    abac = authorizer(tmp_path, "# readers", "", policy(user="alice", namespace="ns", resource="pods", readonly=True))
    assert await allowed(abac, ALICE, "list", **PODS)
    assert not await allowed(abac, ALICE, "delete", **PODS)
    assert not await allowed(abac, STRANGER, "list", **PODS)
    assert not await allowed(abac, ALICE, "list", **PODS | {"namespace": "other"})
    assert not await allowed(abac, ALICE, "list", **PODS | {"group": "apps"})
    assert not await allowed(abac, ALICE, "get", path="/version")
    answer = await abac.authorize(Attributes(STRANGER, "get", path="/version"))
    assert answer == Answer(Decision.NO_OPINION, "No policy matched.")


async def test_a_star_is_everybody_who_is_authenticated(tmp_path: Path) -> None:
    abac = authorizer(tmp_path, policy(user="*", nonResourcePath="/api*"))
    assert await allowed(abac, ALICE, "get", path="/apis/apps")
    assert not await allowed(abac, STRANGER, "get", path="/apis/apps")


async def test_a_policy_of_a_user_and_a_group_is_for_the_user_in_that_group(tmp_path: Path) -> None:
    everything = {"namespace": "*", "resource": "*", "apiGroup": "*"}
    abac = authorizer(tmp_path, policy(user="alice", group="ops", **everything))
    assert not await allowed(abac, ALICE, "get", **PODS)
    assert await allowed(abac, User("alice", groups=("ops",)), "get", **PODS)
    assert not await allowed(authorizer(tmp_path, policy(**everything)), ALICE, "get", **PODS)


async def test_in_the_old_format_what_is_left_out_is_everything(tmp_path: Path) -> None:
    abac = authorizer(tmp_path, '{"user": "alice", "readonly": true}', '{"resource": "events"}')
    assert await allowed(abac, ALICE, "get", path="/healthz")
    assert await allowed(abac, ALICE, "watch", **PODS | {"group": "apps"})
    assert not await allowed(abac, ALICE, "create", **PODS)
    assert await allowed(abac, ALICE, "create", is_resource=True, resource="events")
    assert not await allowed(abac, STRANGER, "get", is_resource=True, resource="events")


async def test_the_rules_of_a_user_are_listed(tmp_path: Path) -> None:
    read = policy(user="alice", namespace="ns", resource="pods", readonly=True)
    abac = authorizer(tmp_path, read, policy(group="devs", namespace="*", nonResourcePath="/x"))
    rules = await abac.rules_for(ALICE, "ns")
    assert rules.resources == (ResourceRule(("get", "list", "watch"), ("",), ("pods",)),)
    assert rules.paths == (NonResourceRule(("*",), ("/x",)),)
    assert (await abac.rules_for(ALICE, "other")).resources == ()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2: {: couldn't get version/kind; json parse error: unexpected end of JSON input"),
        ('{"user": 1}', "cannot unmarshal"),
        ('{"readonly": "yes"}', "cannot unmarshal"),
        ("[]", "cannot unmarshal"),
        ("#" * 70_000, "token too long"),
    ],
)
def test_a_line_that_makes_no_sense_is_named(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(ValueError, match=r"^error reading policy file .*policies\.jsonl") as caught:
        authorizer(tmp_path, policy(user="a"), line)
    assert message in str(caught.value)
