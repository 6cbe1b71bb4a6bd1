"""What users of a server may do that leaves the decision to a real cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from delegating_server import NAME, Line, allow_delegation, delegating_server

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.authz.interface import Answer, Attributes, Authorizer, Decision
from pilothouse.apiserver.authz.union import UnionAuthorizer
from pilothouse.apiserver.authz.webhook import WebhookAuthorizer
from pilothouse.builder.delegated_auth import delegated_authorizer
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.http_transport import HttpTransport
from pilothouse.client.rest.transport import HttpRequest, HttpResponse
from pilothouse.machinery.objects import Json
from pilothouse.testing import API, server

ANN = User("ann", uid="7", groups=("developers",), extra={"reason": ("curious",)})


@pytest.fixture
async def cluster() -> AsyncIterator[API]:
    async with server(authorization_mode="RBAC") as api:
        admin = api.client(in_process=True)
        await allow_delegation(admin, reader=False)
        await _let_developers(admin)
        yield api


@pytest.fixture
async def line(cluster: API) -> AsyncIterator[Line]:
    made = Line(HttpTransport(cluster.as_user(NAME).config()))
    yield made
    await made.close()


@pytest.fixture
def authorizer(line: Line) -> Authorizer:
    return delegated_authorizer(Client(line))


async def _let_developers(admin: Client) -> None:
    rbac = "rbac.authorization.k8s.io"
    rules = [{"apiGroups": ["wardle.example.com"], "resources": ["flunders"], "verbs": ["list"]}]
    await admin.resource(f"{rbac}/v1", "clusterroles").create({"metadata": {"name": "flunders"}, "rules": rules})
    binding = {
        "metadata": {"name": "flunders"},
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "flunders"},
        "subjects": [{"apiGroup": rbac, "kind": "Group", "name": "developers"}],
    }
    await admin.resource(f"{rbac}/v1", "clusterrolebindings").create(binding)


def _flunders(verb: str, user: User = ANN) -> Attributes:
    return Attributes(
        user,
        verb,
        is_resource=True,
        group="wardle.example.com",
        version="v1alpha1",
        resource="flunders",
        namespace="default",
    )


def _reviews(line: Line) -> list[Json]:
    return line.reviews("subjectaccessreviews")


async def test_the_cluster_decides_and_is_asked_once(authorizer: Authorizer, line: Line) -> None:
    for _ in range(2):
        assert (await authorizer.authorize(_flunders("list"))).decision is Decision.ALLOW
        assert (await authorizer.authorize(_flunders("delete"))).decision is Decision.NO_OPINION
    assert len(_reviews(line)) == 2


async def test_answers_are_remembered_for_ten_seconds(
    line: Line, monkeypatch: pytest.MonkeyPatch, authorizer: Authorizer
) -> None:
    now = 1000.0
    assert isinstance(authorizer, UnionAuthorizer)
    webhook = authorizer.authorizers[-1]
    assert isinstance(webhook, WebhookAuthorizer)
    monkeypatch.setattr(webhook._answers, "_now", lambda: now)
    for moment, asked in ((1000.0, 2), (1009.9, 2), (1010.0, 4)):
        now = moment
        await authorizer.authorize(_flunders("list"))
        await authorizer.authorize(_flunders("delete"))
        assert len(_reviews(line)) == asked


async def test_a_review_says_who_what_and_which_selectors(authorizer: Authorizer, line: Line) -> None:
    selected = replace(_flunders("list"), field_selector="metadata.name!=a", label_selector="app in (web),!old")
    await authorizer.authorize(selected)
    await authorizer.authorize(Attributes(ANN, "get", path="/metrics"))
    who = {"user": "ann", "uid": "7", "groups": ["developers"], "extra": {"reason": ["curious"]}}
    resource = {
        "namespace": "default",
        "verb": "list",
        "group": "wardle.example.com",
        "version": "v1alpha1",
        "resource": "flunders",
        "fieldSelector": {"requirements": [{"key": "metadata.name", "operator": "NotIn", "values": ["a"]}]},
        "labelSelector": {
            "requirements": [
                {"key": "app", "operator": "In", "values": ["web"]},
                {"key": "old", "operator": "DoesNotExist"},
            ]
        },
    }
    assert _reviews(line) == [
        {"resourceAttributes": resource, **who},
        {"nonResourceAttributes": {"path": "/metrics", "verb": "get"}, **who},
    ]


async def test_masters_and_questions_of_health_need_no_review(authorizer: Authorizer, line: Line) -> None:
    line.is_cut = True
    masters = User("root", groups=("system:masters",))
    assert (await authorizer.authorize(_flunders("delete", masters))).decision is Decision.ALLOW
    for path in ("/healthz", "/livez", "/readyz"):
        assert (await authorizer.authorize(Attributes(ANN, "get", path=path))).decision is Decision.ALLOW
    assert (await authorizer.authorize(Attributes(ANN, "get", path="/healthz/ping"))).error


async def test_a_cluster_that_does_not_answer_allows_nothing_and_is_asked_again(
    authorizer: Authorizer, line: Line
) -> None:
    line.is_cut = True
    refused = await authorizer.authorize(_flunders("list"))
    assert refused == Answer(Decision.NO_OPINION, error="dial tcp: connection refused")
    line.is_cut = False
    assert (await authorizer.authorize(_flunders("list"))).decision is Decision.ALLOW


async def test_a_request_that_nobody_decides_about_fails_with_the_error(cluster: API, tmp_path: Path) -> None:
    await allow_delegation(cluster.client(in_process=True), delegator=False)
    async with delegating_server(cluster, tmp_path) as extension:
        extension.line.is_cut = True
        answer = await extension.ask("/metrics")
    assert answer.status == 500
    assert answer.body == b'Internal Server Error: "/metrics": dial tcp: connection refused\n'


async def test_a_server_without_its_role_says_what_it_may_not(cluster: API) -> None:
    authorizer = delegated_authorizer(cluster.as_user("stranger").client())
    answer = await authorizer.authorize(_flunders("list"))
    assert answer.decision is Decision.NO_OPINION
    assert answer.error.startswith('subjectaccessreviews.authorization.k8s.io is forbidden: User "stranger" cannot')


async def test_an_error_of_the_cluster_is_asked_about_once_more(
    authorizer: Authorizer, line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    send, failures = line._transport.send, [1]

    class Broken:
        status, headers = 500, {"content-type": "text/plain"}

        async def read(self) -> bytes:
            return b"etcd is away"

        def chunks(self) -> AsyncIterator[bytes]:
            raise AssertionError("an error is read as a whole")

        async def close(self) -> None:
            return

    async def fail_once(request: HttpRequest) -> HttpResponse:
        if failures:
            failures.pop()
            return Broken()
        return await send(request)

    monkeypatch.setattr(line._transport, "send", fail_once)
    assert (await authorizer.authorize(_flunders("list"))).decision is Decision.ALLOW
    assert len(_reviews(line)) == 2
