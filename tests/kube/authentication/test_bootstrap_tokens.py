"""Bootstrap tokens: which secrets make them good."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from service_account_tokens import SetClock

from pilothouse.apiserver.authn.user import User
from pilothouse.kube.authentication.bootstrap_tokens import BootstrapTokens
from pilothouse.machinery.objects import Json

ID, VALUE = "abc123", "0123456789abcdef"
TOKEN = f"{ID}.{VALUE}"


def secret(type: str = "bootstrap.kubernetes.io/token", meta: Json | None = None, **changed: str) -> Json:
    data = {"token-id": ID, "token-secret": VALUE, "usage-bootstrap-authentication": "true"}
    data |= {key.replace("_", "-"): value for key, value in changed.items()}
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    return {"metadata": {"name": f"bootstrap-token-{ID}"} | (meta or {}), "type": type, "data": encoded}


def tokens(stored: Json | None) -> BootstrapTokens:
    async def get(namespace: str, name: str) -> Json | None:
        return stored if (namespace, name) == ("kube-system", f"bootstrap-token-{ID}") else None

    return BootstrapTokens(get, ("api",), clock=SetClock())


async def user(stored: Json | None, token: str = TOKEN) -> User | None:
    found = await tokens(stored).authenticate_token(token)
    return None if found is None else found.user


async def test_the_token_of_a_secret_is_a_bootstrapper() -> None:
    found = await user(secret(auth_extra_groups="system:bootstrappers:b,system:bootstrappers:a"))
    assert found == User(
        "system:bootstrap:abc123",
        groups=(
            "system:bootstrappers",
            "system:bootstrappers:a",
            "system:bootstrappers:b",
            "system:authenticated",
        ),
    )


@pytest.mark.parametrize(
    ("stored", "token"),
    [
        (None, TOKEN),
        (secret(), f"{ID}.{VALUE[:-1]}x"),
        (secret(), f"{ID}.{VALUE}x"),
        (secret(), f"abc124.{VALUE}"),
        (secret(), TOKEN.upper()),
        (secret(), f"{TOKEN}\n"),
        (secret(type="Opaque"), TOKEN),
        (secret(token_id="other1"), TOKEN),
        (secret(usage_bootstrap_authentication="yes"), TOKEN),
        (secret(auth_extra_groups="system:masters"), TOKEN),
        (secret(expiration="2026-05-01T12:00:00Z"), TOKEN),
        (secret(expiration="soon"), TOKEN),
        (secret(meta={"deletionTimestamp": "2026-05-01T11:00:00Z"}), TOKEN),
    ],
)
async def test_anything_else_is_nobody(stored: Json | None, token: str) -> None:
    assert await user(stored, token) is None


async def test_a_token_that_has_not_expired_is_good() -> None:
    assert await user(secret(expiration="2026-05-01T12:00:01Z")) is not None


async def test_the_token_is_for_the_server_only() -> None:
    assert await tokens(secret()).authenticate_token(TOKEN, ["alien"]) is None
    found: Any = await tokens(secret()).authenticate_token(TOKEN, ["alien", "api"])
    assert found.audiences == ("api",)
