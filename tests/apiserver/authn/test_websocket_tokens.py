"""Tokens among the subprotocols of a WebSocket."""

from __future__ import annotations

import base64

import pytest

from pilothouse.apiserver.authn.bearer import WebSocketTokenAuthenticator
from pilothouse.apiserver.authn.tokens import StaticTokens
from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.http import Headers, Request
from pilothouse.machinery.errors import Unauthorized

PREFIX = "base64url.bearer.authorization.k8s.io."
AUTHENTICATOR = WebSocketTokenAuthenticator(StaticTokens({"good": User("jane")}))


def token(text: str = "good") -> str:
    return PREFIX + base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


async def _no_body(limit: int) -> bytes:
    return b""


def request(*protocols: str, upgrade: str = "WebSocket") -> Request:
    headers: Headers = [(b"upgrade", upgrade.encode())]
    headers += [(b"sec-websocket-protocol", each.encode()) for each in protocols]
    return Request("GET", "/", "", headers, _no_body)


async def test_the_token_names_the_user_and_goes_no_further() -> None:
    asked = request(f"v5.channel.k8s.io, {token()}", "v4.channel.k8s.io")
    assert await AUTHENTICATOR.authenticate(asked) == User("jane")
    assert asked.header(b"sec-websocket-protocol") == "v5.channel.k8s.io,v4.channel.k8s.io"
    assert all(PREFIX.encode() not in value for _, value in asked.headers)


@pytest.mark.parametrize(
    "asked",
    [
        request(token()),
        request("v5", token("bad")),
        request("v5", token(), token()),
        request("v5", f"{PREFIX}!!!"),
        request("v5", f"{PREFIX}_w"),
        request("v5", f"{token()}="),
    ],
)
async def test_anything_wrong_with_it_is_refused(asked: Request) -> None:
    with pytest.raises(Unauthorized):
        await AUTHENTICATOR.authenticate(asked)


async def test_other_requests_have_no_such_token() -> None:
    assert await AUTHENTICATOR.authenticate(request("v5", token(), upgrade="SPDY/3.1")) is None
    assert await AUTHENTICATOR.authenticate(request("v5")) is None
    assert await AUTHENTICATOR.authenticate(request()) is None
