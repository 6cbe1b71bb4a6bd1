"""Bearer tokens in the WebSocket subprotocol header, for browsers, which cannot set other headers."""

from __future__ import annotations

from base64 import urlsafe_b64decode
from binascii import Error as Base64Error
from itertools import islice

from pilothouse.apiserver.authn.bearer import user_of
from pilothouse.apiserver.authn.interface import InvalidToken, TokenAuthenticator
from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.http import Request
from pilothouse.machinery.errors import Unauthorized

_PREFIX = "base64url.bearer.authorization.k8s.io."
_HEADER = b"sec-websocket-protocol"
_MOST_PROTOCOLS = 64
"""Maximum number of parsed subprotocols; the request is not yet authenticated."""


class WebSocketTokenAuthenticator:
    def __init__(self, tokens: TokenAuthenticator) -> None:
        self._tokens = tokens

    async def authenticate(self, request: Request) -> User | None:
        if request.header(b"upgrade").lower() != "websocket":
            return None
        protocols = _protocols(request)
        tokens = [each.removeprefix(_PREFIX) for each in protocols if each.startswith(_PREFIX)]
        others = [each for each in protocols if not each.startswith(_PREFIX)]
        if not any(tokens):
            return None
        if len(tokens) > 1 or not others:
            raise Unauthorized  # the server must echo one of the other subprotocols
        token = _decoded(tokens[0])
        try:
            found = await self._tokens.authenticate_token(token)
        except InvalidToken:
            raise Unauthorized from None
        user = user_of(found, request)
        # Remove the token from the header that is echoed and logged.
        shown = [(name, value) for name, value in request.headers if name != _HEADER]
        request.set_headers([*shown, (_HEADER, ",".join(others).encode("latin-1"))])
        return user


def _protocols(request: Request) -> list[str]:
    """Return the first protocols of all subprotocol headers."""
    values = (value.decode("latin-1") for name, value in request.headers if name == _HEADER)
    protocols = (name.strip() for value in values for name in value.split(",", _MOST_PROTOCOLS)[:_MOST_PROTOCOLS])
    return list(islice(protocols, _MOST_PROTOCOLS))


def _decoded(encoded: str) -> str:
    """Decode the token. Raises Unauthorized."""
    if "=" in encoded:
        raise Unauthorized
    try:
        return urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
    except (Base64Error, ValueError):
        raise Unauthorized from None
