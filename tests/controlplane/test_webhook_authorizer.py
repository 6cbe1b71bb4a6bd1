"""The webhook authorizer against webhooks over real TLS."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE
from review_webhooks import Decide, ReviewServer, review_server, write_kubeconfig

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.authz.interface import Answer, Attributes, Decision
from pilothouse.apiserver.authz.match_conditions import ReviewConditions, compiled_condition
from pilothouse.apiserver.authz.webhook import WebhookAuthorizer, WebhookConfig
from pilothouse.controlplane.review_webhook import KubeconfigReviews
from pilothouse.machinery.objects import Json

JANE = User("jane", uid="7", groups=("devs",), extra={"scopes": ("a", "b")})
PODS = Attributes(JANE, "list", is_resource=True, version="v1", resource="pods", namespace="ns")


@asynccontextmanager
async def asking(decide: Decide, folder: Path, **config: Any) -> AsyncIterator[tuple[WebhookAuthorizer, ReviewServer]]:
    async with review_server(decide) as server:
        webhook = KubeconfigReviews(server.kubeconfig(folder), timeout=PATIENCE, initial_backoff=0.0)
        try:
            yield WebhookAuthorizer(webhook, WebhookConfig("w", **config)), server
        finally:
            await webhook.close()


async def test_the_webhook_sees_everything_about_the_request(tmp_path: Path) -> None:
    async with asking(lambda review: {"allowed": True, "reason": "friend"}, tmp_path) as (authorizer, server):
        selected = replace(PODS, field_selector="spec.nodeName=n,a!=b", label_selector="x in (c,d),!y")
        assert await authorizer.authorize(selected) == Answer(Decision.ALLOW, "friend")
    (review,) = server.reviews
    assert (review["apiVersion"], review["kind"]) == ("authorization.k8s.io/v1", "SubjectAccessReview")
    attributes = review["spec"].pop("resourceAttributes")
    assert review["spec"] == {"user": "jane", "uid": "7", "groups": ["devs"], "extra": {"scopes": ["a", "b"]}}
    assert attributes.pop("fieldSelector")["requirements"] == [
        {"key": "a", "operator": "NotIn", "values": ["b"]},
        {"key": "spec.nodeName", "operator": "In", "values": ["n"]},
    ]
    labels = attributes.pop("labelSelector")["requirements"]
    assert [(each["key"], each["operator"]) for each in labels] == [("x", "In"), ("y", "DoesNotExist")]
    assert attributes == {"namespace": "ns", "verb": "list", "version": "v1", "resource": "pods"}


async def test_the_old_version_has_its_own_name_for_groups(tmp_path: Path) -> None:
    async with asking(lambda review: {"allowed": True}, tmp_path, version="v1beta1") as (authorizer, server):
        await authorizer.authorize(Attributes(JANE, "get", path="/healthz"))
    assert server.reviews[0]["apiVersion"] == "authorization.k8s.io/v1beta1"
    assert server.reviews[0]["spec"]["group"] == ["devs"]
    assert server.reviews[0]["spec"]["nonResourceAttributes"] == {"path": "/healthz", "verb": "get"}


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        ({"allowed": False}, Answer(Decision.NO_OPINION)),
        ({"allowed": False, "denied": True, "reason": "no"}, Answer(Decision.DENY, "no")),
        (
            {"allowed": True, "denied": True},
            Answer(Decision.DENY, "", "webhook subject access review returned both allow and deny response"),
        ),
    ],
)
async def test_what_the_webhook_says_is_taken_as_it_is(tmp_path: Path, status: Json, answer: Answer) -> None:
    async with asking(lambda review: status, tmp_path) as (authorizer, _):
        assert await authorizer.authorize(PODS) == answer


async def test_answers_are_remembered_for_their_time(tmp_path: Path) -> None:
    def allow_lists(review: Json) -> Json:
        return {"allowed": review["spec"]["resourceAttributes"]["verb"] == "list"}

    async with asking(allow_lists, tmp_path, authorized_ttl=60, unauthorized_ttl=0) as (authorizer, server):
        for _ in range(2):
            await authorizer.authorize(PODS)
            await authorizer.authorize(replace(PODS, verb="get"))
            await authorizer.authorize(replace(PODS, name="x" * 10_000))
    asked = [review["spec"]["resourceAttributes"] for review in server.reviews]
    assert [each["verb"] for each in asked if "name" not in each] == ["list", "get", "get"]
    assert len([each for each in asked if "name" in each]) == 2, "what a client makes long is not remembered"


async def test_a_webhook_that_fails_is_asked_again_and_then_has_no_opinion(tmp_path: Path) -> None:
    answers: list[Json | int] = [500, 500, {"allowed": True}]
    async with asking(lambda review: answers.pop(0), tmp_path) as (authorizer, server):
        assert (await authorizer.authorize(PODS)).decision is Decision.ALLOW
        answers += [500] * 5
        failed = await authorizer.authorize(replace(PODS, verb="get"))
    assert (failed.decision, len(server.reviews)) == (Decision.NO_OPINION, 8)
    assert "500 Internal Server Error" in failed.error


async def test_a_webhook_that_refuses_to_answer_is_not_asked_again(tmp_path: Path) -> None:
    async with asking(lambda review: 403, tmp_path, on_error=Decision.DENY) as (authorizer, server):
        failed = await authorizer.authorize(PODS)
    assert (failed.decision, bool(failed.error), len(server.reviews)) == (Decision.DENY, True, 1)


async def test_a_webhook_of_another_ca_is_not_believed(tmp_path: Path) -> None:
    async with review_server(lambda review: {"allowed": True}) as other, review_server(lambda review: {}) as ours:
        file = write_kubeconfig(tmp_path, f"https://127.0.0.1:{other.server.port}/", ours.server.ca_bundle)
        webhook = KubeconfigReviews(file, timeout=PATIENCE, initial_backoff=0.0)
        answer = await WebhookAuthorizer(webhook, WebhookConfig("w")).authorize(PODS)
        await webhook.close()
    assert (answer.decision, other.reviews) == (Decision.NO_OPINION, [])
    assert answer.error


def conditions(*sources: str) -> ReviewConditions:
    return ReviewConditions([compiled_condition(source) for source in sources])


@pytest.mark.parametrize(
    ("sources", "asked"),
    [
        (("request.user == 'jane'", "'devs' in request.groups"), True),
        (("has(request.resourceAttributes)", "request.resourceAttributes.namespace == 'ns'"), True),
        (("request.resourceAttributes.namespace == 'other'",), False),
        (("request.nonResourceAttributes.path == '/x'", "request.user != 'jane'"), False),
        (("request.extra['scopes'].exists(scope, scope == 'b')",), True),
        (("request.resourceAttributes.name == ''",), True),
        (("has(request.resourceAttributes.fieldSelector)",), False),
    ],
)
async def test_only_requests_that_match_reach_the_webhook(
    tmp_path: Path, sources: tuple[str, ...], asked: bool
) -> None:
    async with asking(lambda review: {"allowed": True}, tmp_path, conditions=conditions(*sources)) as (
        authorizer,
        server,
    ):
        answer = await authorizer.authorize(PODS)
    assert (bool(server.reviews), answer.decision is Decision.ALLOW) == (asked, asked)
    assert not answer.error


async def test_a_condition_that_fails_is_a_failure_of_the_webhook(tmp_path: Path) -> None:
    broken = conditions("request.nonResourceAttributes.path == '/x'")
    async with asking(lambda review: {"allowed": True}, tmp_path, conditions=broken, on_error=Decision.DENY) as (
        authorizer,
        server,
    ):
        answer = await authorizer.authorize(PODS)
    expression = "expression 'request.nonResourceAttributes.path == '/x'' resulted in error"
    assert (answer.decision, server.reviews) == (Decision.DENY, [])
    assert answer.error == f"cel evaluation error: {expression}: no such key: nonResourceAttributes"
