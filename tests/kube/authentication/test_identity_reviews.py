"""TokenReviews and SelfSubjectReviews: who somebody is."""

from __future__ import annotations

from pathlib import Path

import pytest
from service_account_tokens import ISSUER, Objects, SetClock, claims, write_key

from pilothouse.apiserver.authn.bearer import UnionTokenAuthenticator
from pilothouse.apiserver.authn.tokens import StaticTokens
from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.registry.interface import Creator
from pilothouse.apiserver.registry.operations import RequestContext
from pilothouse.apiserver.registry.options import WriteOptions
from pilothouse.kube.authentication.storage_provider import SelfSubjectReviews, TokenReviews
from pilothouse.kube.config import ServiceAccountConfig
from pilothouse.kube.serviceaccount.authenticator import ServiceAccountTokenAuthenticator
from pilothouse.kube.serviceaccount.keys import SigningKey, TokenIssuer
from pilothouse.kube.serviceaccount.validator import BoundTokenValidator
from pilothouse.machinery.errors import BadRequest
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json

JANE = User("jane", "7", ("ops",), {"k": ("v",)})
SHOWN: Json = {"username": "jane", "uid": "7", "groups": ["ops"], "extra": {"k": ["v"]}}
SERVER = "https://kubernetes.default.svc"


async def allow(_: Json) -> None:
    """Admission has nothing to say here."""


async def create(storage: Creator, spec: Json, **sent: Json) -> Json:
    ctx = RequestContext("", GroupResource("authentication.k8s.io", "x"), JANE, warn=lambda text: None)
    obj: Json = {"kind": "K", "apiVersion": "authentication.k8s.io/v1", "metadata": {}, "spec": spec, **sent}
    result = await storage.create(ctx, obj, options=WriteOptions(), validate=allow)
    assert isinstance(result, dict)
    return result


def reviews() -> TokenReviews:
    return TokenReviews(StaticTokens({"secret": JANE}, [SERVER]), [SERVER])


@pytest.mark.parametrize(
    ("spec", "status"),
    [
        ({"token": "secret"}, {"authenticated": True, "user": SHOWN, "audiences": [SERVER]}),
        (
            {"token": "secret", "audiences": ["vault", SERVER]},
            {"authenticated": True, "user": SHOWN, "audiences": [SERVER]},
        ),
        ({"token": "secret", "audiences": ["vault"]}, {"user": {}, "error": "invalid bearer token"}),
        ({"token": "secret and more"}, {"authenticated": True, "user": SHOWN, "audiences": [SERVER]}),
        ({"token": " secret"}, {"user": {}}),
        ({"token": "garbage"}, {"user": {}, "error": "invalid bearer token"}),
    ],
)
async def test_a_token_is_good_for_the_servers_audiences(spec: Json, status: Json) -> None:
    assert (await create(reviews(), spec))["status"] == status


async def test_a_token_that_nobody_reads_is_nobodys() -> None:
    nobody = TokenReviews(UnionTokenAuthenticator([]), [SERVER])
    assert (await create(nobody, {"token": "secret"}))["status"] == {"user": {}, "error": "invalid bearer token"}


async def test_what_is_wrong_with_a_token_is_told(tmp_path: Path) -> None:
    config = ServiceAccountConfig(write_key(tmp_path / "sa.key"), issuers=(ISSUER,), api_audiences=(SERVER,))
    accounts = ServiceAccountTokenAuthenticator(config, BoundTokenValidator(Objects(), SetClock()))
    review = TokenReviews(UnionTokenAuthenticator([StaticTokens({}, [SERVER]), accounts]), [SERVER])
    token = await TokenIssuer(ISSUER, SigningKey(tmp_path / "sa.key")).sign(claims(audiences=["vault"]))
    why = f'token audiences ["vault"] is invalid for the target audiences ["{SERVER}"]'
    refused = {"user": {}, "error": f"[invalid bearer token, {why}]"}
    assert (await create(review, {"token": token}))["status"] == refused
    accepted = (await create(review, {"token": token, "audiences": ["vault", SERVER]}))["status"]
    assert (accepted["authenticated"], accepted["audiences"]) == (True, ["vault"])


async def test_a_review_needs_a_token() -> None:
    with pytest.raises(BadRequest, match="token is required for TokenReview in authentication"):
        await create(reviews(), {})


async def test_everyone_can_ask_who_they_are() -> None:
    review = await create(SelfSubjectReviews(), {})
    assert review["status"] == {"userInfo": SHOWN}
    assert "spec" not in review
    assert set(review["metadata"]) == {"creationTimestamp"}


async def test_a_status_that_was_sent_stands_where_the_answer_says_nothing() -> None:
    sent: Json = {"authenticated": True, "user": {"username": "eve"}, "audiences": ["a"], "error": "e"}
    wrong = await create(reviews(), {"token": "garbage"}, status=sent)
    right = await create(reviews(), {"token": "secret"}, status=sent)
    assert wrong["status"] == {"user": {"username": "eve"}, "audiences": ["a"], "error": "invalid bearer token"}
    assert right["status"] == {"authenticated": True, "user": SHOWN, "audiences": [SERVER], "error": "e"}
