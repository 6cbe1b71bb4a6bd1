"""Bearer tokens: how they are read, and how several authenticators are asked about one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from pilothouse.apiserver.authn.bearer import EXTRA_SPACE, BearerAuthenticator, UnionTokenAuthenticator
from pilothouse.apiserver.authn.interface import InvalidToken, TokenIdentity
from pilothouse.apiserver.authn.tokens import StaticTokens
from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.http import Request
from pilothouse.machinery.errors import Unauthorized

BOB, SERVER = User("bob"), "https://server"
STATIC = StaticTokens({"t": BOB}, [SERVER, "other"])


@dataclass(frozen=True)
class Refusing:
    why: str

    async def authenticate_token(self, token: str, audiences: Sequence[str] | None = None) -> TokenIdentity | None:
        raise InvalidToken(self.why)


async def no_body(limit: int) -> bytes:
    return b""


def request(authorization: str) -> Request:
    return Request("GET", "/", "", [(b"authorization", authorization.encode())], no_body)


@pytest.mark.parametrize("header", ["Bearer t", "bearer t", "  BEARER t  ", "Bearer t and more"])
async def test_the_word_behind_bearer_is_the_token(header: str) -> None:
    assert await BearerAuthenticator(STATIC).authenticate(request(header)) is BOB


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic t", "t", "Bearert"])
async def test_other_headers_are_no_credentials(header: str) -> None:
    assert await BearerAuthenticator(STATIC).authenticate(request(header)) is None


async def test_a_token_behind_two_spaces_is_ignored_with_a_warning() -> None:
    asked = request("Bearer  t")
    assert await BearerAuthenticator(STATIC).authenticate(asked) is None
    assert asked.warnings == [EXTRA_SPACE]


@pytest.mark.parametrize("tokens", [STATIC, Refusing("expired"), UnionTokenAuthenticator([])])
async def test_a_token_that_nobody_accepts_is_unauthorized(
    tokens: StaticTokens | Refusing | UnionTokenAuthenticator,
) -> None:
    with pytest.raises(Unauthorized):
        await BearerAuthenticator(tokens).authenticate(request("Bearer wrong"))


async def test_a_refusal_does_not_keep_others_from_accepting() -> None:
    union = UnionTokenAuthenticator([Refusing("expired"), STATIC])
    assert await union.authenticate_token("t") == TokenIdentity(BOB, (SERVER, "other"))


async def test_all_reasons_are_told_when_nobody_accepts() -> None:
    union = UnionTokenAuthenticator([Refusing("expired"), STATIC, Refusing("unsigned")])
    with pytest.raises(InvalidToken) as refusal:
        await union.authenticate_token("wrong")
    assert refusal.value.args == ("expired", "unsigned")


async def test_a_static_token_is_meant_for_the_servers_audiences_only() -> None:
    assert await STATIC.authenticate_token("t", ["other", "vault"]) == TokenIdentity(BOB, ("other",))
    assert await STATIC.authenticate_token("t", ["vault"]) is None
