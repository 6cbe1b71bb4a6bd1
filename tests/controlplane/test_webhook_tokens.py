"""Tokens that a webhook over real TLS knows."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from patience import PATIENCE
from review_webhooks import Decide, review_server

from pilothouse.apiserver.authn.interface import InvalidToken
from pilothouse.apiserver.authn.webhook_tokens import WebhookTokens
from pilothouse.controlplane.review_webhook import KubeconfigReviews
from pilothouse.machinery.objects import Json


@asynccontextmanager
async def asking(decide: Decide, folder: Path, version: str = "v1") -> AsyncIterator[WebhookTokens]:
    async with review_server(decide) as server:
        webhook = KubeconfigReviews(server.kubeconfig(folder), timeout=PATIENCE, initial_backoff=0.0)
        yield WebhookTokens(webhook, version=version, audiences=("api",))
        await webhook.close()


KNOWN: Json = {"authenticated": True, "user": {"username": "u", "uid": "1"}}


@pytest.mark.parametrize(
    ("status", "wanted", "accepted"),
    [
        (KNOWN, None, ("api",)),
        (KNOWN, ["api", "x"], ("api",)),
        (KNOWN, ["x"], None),
        (KNOWN | {"audiences": ["x", "y"]}, ["x"], ("x",)),
        (KNOWN | {"audiences": ["x"]}, None, None),
        ({"authenticated": False}, None, None),
    ],
)
async def test_the_webhook_says_whose_a_token_is_and_for_whom(
    tmp_path: Path, status: Json, wanted: list[str] | None, accepted: tuple[str, ...] | None
) -> None:
    async with asking(lambda review: status, tmp_path) as tokens:
        found = await tokens.authenticate_token("t", wanted)
    assert (None if found is None else found.audiences) == accepted


async def test_what_the_webhook_finds_wrong_is_passed_on(tmp_path: Path) -> None:
    async with asking(lambda review: {"authenticated": False, "error": "revoked"}, tmp_path) as tokens:
        with pytest.raises(InvalidToken, match="revoked"):
            await tokens.authenticate_token("t")


async def test_a_webhook_that_fails_makes_the_token_wrong(tmp_path: Path) -> None:
    async with asking(lambda review: 500, tmp_path, version="v1beta1") as tokens:
        with pytest.raises(InvalidToken, match="500"):
            await tokens.authenticate_token("t")
