"""Issuers and webhooks that answer nonsense, tokens that are made to hurt: nobody gets in by them, and nobody waits.

The webhooks of this server do as they are told: the token of a request is the status that authentication answers, and
the user's UID is the status that authorization answers.
"""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from authentication_configuration import jwt
from livez_client import LivezClient, livez_client
from oidc_issuer import Issuer, jwk, oidc_issuer, rsa_key
from patience import PATIENCE
from review_webhooks import ReviewServer, review_server
from serving_process import ServeProcess

from pilothouse.machinery.objects import Json

LONGEST_WAIT, TRIES = 0.25, 6
NAMESPACES = "/api/v1/namespaces"
ALLOWED: Json = {"allowed": True}
NOBODY = "nobodys-token"
REFUSED = (403, 500)
"""500 where the authorizer failed, as upstream has it."""
AUTHORIZATION = """
apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- type: RBAC
  name: rbac
- type: Webhook
  name: hook
  webhook:
    timeout: 3s
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: Deny
    connectionInfo: {{type: KubeConfigFile, kubeConfigFile: {kubeconfig}}}
    matchConditions:
    - expression: "!request.groups.exists(one, request.groups.exists(other, one + other == 'never'))"
    - expression: "request.user != 'no-match'"
- type: AlwaysAllow
  name: alwaysallow
"""
"""Whoever gets past the webhook without an answer is let in by the last authorizer."""
MAPPINGS = "{username: {claim: sub, prefix: ''}, groups: {expression: 'claims.?groups.orValue([])'}}"


def identify(review: Json) -> Any:
    try:
        return json.loads(review["spec"]["token"])
    except ValueError:
        return {"authenticated": False}


def decide(review: Json) -> Any:
    try:
        return json.loads(review["spec"].get("uid") or "{}")
    except ValueError:
        return {}


class Elsewhere:
    """The issuer and the webhooks, on an event loop of their own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._stack = AsyncExitStack()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self.issuer: Issuer = self._enter(oidc_issuer())
        self.users: ReviewServer = self._enter(review_server(identify))
        self.access: ReviewServer = self._enter(review_server(decide))

    def _enter(self, context: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(self._stack.enter_async_context(context), self._loop).result(PATIENCE)

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._stack.aclose(), self._loop).result(PATIENCE)
        self._loop.call_soon_threadsafe(self._loop.stop)


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Elsewhere]:
    running = Elsewhere()
    yield running
    running.close()


@pytest.fixture(scope="module")
def server(elsewhere: Elsewhere, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeProcess]:
    folder: Path = tmp_path_factory.mktemp("providers")
    for name in ("users", "access"):
        (folder / name).mkdir()
    (folder / "authentication.yaml").write_text(
        jwt(elsewhere.issuer.url, ca=elsewhere.issuer.ca, claimMappings=MAPPINGS)
    )
    kubeconfig = elsewhere.access.kubeconfig(folder / "access")
    (folder / "authorization.yaml").write_text(AUTHORIZATION.format(kubeconfig=kubeconfig))
    (folder / "tokens.csv").write_text(f"{NOBODY},nobody,1\n")
    running = ServeProcess(
        folder / "data",
        f"--authentication-config={folder / 'authentication.yaml'}",
        f"--authorization-config={folder / 'authorization.yaml'}",
        f"--authentication-token-webhook-config-file={elsewhere.users.kubeconfig(folder / 'users')}",
        "--authentication-token-webhook-version=v1",
        f"--token-auth-file={folder / 'tokens.csv'}",
    )
    while running.get(NAMESPACES, as_admin=False, token=elsewhere.issuer.token())[0] == 401:
        pass  # the issuer's keys come in the background
    yield running
    running.close()


@pytest.fixture(scope="module")
def other(server: ServeProcess) -> Iterator[LivezClient]:
    ca_file, pid = str(server.data_dir / "pki/ca.crt"), server.process.pid
    with livez_client("127.0.0.1", server.port, ca_file=ca_file, token=NOBODY, pid=pid) as client:
        yield client


def status(server: ServeProcess, token: str, path: str = NAMESPACES) -> int:
    return server.get(path, as_admin=False, token=token)[0]


def known_as(name: str, **user: Any) -> str:
    """Return a token whose user the webhook names."""
    return json.dumps({"authenticated": True, "user": {"username": name, **user}}, separators=(",", ":"))


def who_may(answer: Any, name: str) -> str:
    """Return a token of a user about whom the other webhook answers this."""
    return known_as(name, uid=json.dumps(answer, separators=(",", ":")))


@pytest.mark.parametrize(
    "answer",
    [
        {"authenticated": "false", "user": {"username": "eve"}},
        {"authenticated": "true", "user": {"username": "eve"}},
        {"authenticated": 1, "user": {"username": "eve"}},
        {"authenticated": {"no": "way"}, "user": {"username": "eve"}},
        {"authenticated": True, "user": "eve"},
        {"authenticated": True, "user": {"username": ["eve"]}},
        {"authenticated": True, "user": {"username": "eve", "groups": "system:masters"}},
        {"authenticated": True, "user": {"username": "eve", "groups": [{"system": "masters"}]}},
        {"authenticated": True, "user": {"username": "eve", "extra": ["system:masters"]}},
        {"authenticated": True, "user": {"username": "eve", "extra": {"a": "system:masters"}}},
        {"authenticated": True, "user": {"username": "eve"}, "audiences": "https://kubernetes.default.svc"},
        {"authenticated": True, "user": {"username": "eve"}, "audiences": ["somebody-else"]},
        ["authenticated"],
        "authenticated",
        None,
    ],
    ids=repr,
)
def test_an_answer_of_other_types_authenticates_nobody(server: ServeProcess, answer: Any) -> None:
    assert status(server, json.dumps(answer, separators=(",", ":"))) == 401


@pytest.mark.parametrize(
    "answer",
    [
        {"allowed": "true"},
        {"allowed": "false"},
        {"allowed": 1},
        {"allowed": True, "denied": "no"},
        {"allowed": True, "denied": True},
        {"allowed": True, "reason": {"a": "b"}},
        ["allowed"],
        "allowed",
        503,
        404,
        302,
    ],
    ids=repr,
)
def test_an_answer_of_other_types_allows_nothing_and_is_not_remembered(
    server: ServeProcess, elsewhere: Elsewhere, answer: Any
) -> None:
    token = who_may(answer, f"eve{len(repr(answer))}")
    assert status(server, token) in REFUSED
    asked = len(elsewhere.access.reviews)
    assert status(server, token) in REFUSED
    is_decision = answer == {"allowed": True, "denied": True}
    assert (len(elsewhere.access.reviews) == asked) == is_decision


def test_who_is_allowed_and_who_the_webhook_is_not_for(server: ServeProcess) -> None:
    assert status(server, who_may(ALLOWED, "friend")) == 200
    assert status(server, known_as("no-match")) == 200, "the last authorizer allows everything"


@pytest.mark.parametrize(
    "changed",
    [{"groups": ["g"]}, {"extra": {"k": ["v"]}}, {"extra": {"k": ["v", ""]}}, {"groups": ["g,h"]}],
    ids=repr,
)
def test_answers_about_a_user_are_not_those_about_a_namesake(
    server: ServeProcess, elsewhere: Elsewhere, changed: Json
) -> None:
    same: Json = {"uid": json.dumps(ALLOWED, separators=(",", ":"))}
    assert status(server, known_as("namesake", **same)) == 200
    asked = len(elsewhere.access.reviews)
    assert status(server, known_as("namesake", **same, **changed)) == 200
    assert len(elsewhere.access.reviews) == asked + 1


def _unsigned(payload: bytes, header: bytes = b'{"alg":"RS256","kid":"rsa"}') -> str:
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in (header, payload, b"signature"))


GROUPS = [f"{number:05}" for number in range(12_000)]
LONG: dict[str, Callable[[Issuer], str]] = {
    "12,000 groups": lambda issuer: issuer.token(groups=GROUPS),
    "24,000 groups of one letter": lambda issuer: issuer.token(groups=["a"] * 24_000),
    "100,000 groups": lambda issuer: issuer.token(groups=GROUPS * 8),
    "extra claims of many levels": lambda issuer: issuer.token(deep=json.loads("[" * 900 + "]" * 900)),
    "levels, unsigned": lambda issuer: _unsigned(b'{"iss":"%s","a":' % issuer.url.encode() + b"[" * 90_000),
    "audiences, unsigned": lambda issuer: _unsigned(json.dumps(issuer.claims(aud=GROUPS)).encode()),
    "a header of many levels": lambda issuer: _unsigned(json.dumps(issuer.claims()).encode(), b"[" * 90_000),
    "900,000 bytes, unsigned": lambda issuer: _unsigned(b'{"iss":"' + b"a" * 600_000 + b'"}'),
    "900,000 dots": lambda issuer: "." * 900_000,
    "no key named": lambda issuer: issuer.token(kid=""),
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] if name.endswith(("groups", "letter")) else []) for name in LONG],
)
def test_nobody_waits_for_a_token_that_is_made_to_hurt(
    server: ServeProcess, elsewhere: Elsewhere, other: LivezClient, name: str
) -> None:
    """The longest wait of another client for eight requests at once."""
    make, waits = LONG[name], [1.0]
    while min(waits) > LONGEST_WAIT and len(waits) <= TRIES:
        tokens = [make(elsewhere.issuer) for _ in range(8)]
        other.longest_wait()
        with ThreadPoolExecutor(8) as threads:
            answers = set(threads.map(lambda token: status(server, token), tokens))
        waits.append(other.longest_wait())
    assert min(waits) <= LONGEST_WAIT
    assert answers <= {200, 401, *REFUSED}


def test_groups_that_use_up_the_budget_of_a_condition_are_refused(server: ServeProcess, elsewhere: Elsewhere) -> None:
    few, many = elsewhere.issuer.token(groups=GROUPS[:3]), elsewhere.issuer.token(groups=GROUPS)
    assert (status(server, few), status(server, many)) == (200, 500)


def test_an_issuer_with_strange_keys_is_heard_when_it_comes_to_its_senses(
    server: ServeProcess, elsewhere: Elsewhere
) -> None:
    """Among the keys are some of no type, and a thousand that a token without a key's name could be of."""
    issuer, before = elsewhere.issuer, list(elsewhere.issuer.keys)
    try:
        odd: list[Any] = [{"kty": ["RSA"]}, {"kty": "EC", "crv": {}}, {"kty": "RSA", "n": 5}, 7, None]
        issuer.keys = [*odd, *([before[0] | {"kid": ""}] * 1000), jwk(rsa_key("second"), "second")]
        while status(server, issuer.token(key=rsa_key("second"), kid="second")) == 401:
            pass  # keys are not fetched more often than once a second
        assert status(server, issuer.token(key=rsa_key("third"), kid="")) == 401
    finally:
        issuer.keys = before


def test_a_webhook_that_is_gone_allows_nothing(server: ServeProcess, elsewhere: Elsewhere) -> None:
    before = elsewhere.access.decide
    try:
        elsewhere.access.decide = lambda review: 503
        assert status(server, who_may(ALLOWED, "later")) == 500
    finally:
        elsewhere.access.decide = before
    assert status(server, who_may(ALLOWED, "later")) == 200
