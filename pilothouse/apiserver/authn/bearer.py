"""Bearer tokens, in the Authorization header or in the WebSocket subprotocol header."""

from __future__ import annotations

from base64 import urlsafe_b64decode
from binascii import Error as Base64Error
from collections.abc import Sequence
from itertools import islice

from pilothouse.apiserver.authn import interface
from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.http import Request
from pilothouse.machinery.errors import Unauthorized

EXTRA_SPACE = "the provided Authorization header contains extra space before the bearer token, and is ignored"


class UnionTokenAuthenticator:
    """Tries token authenticators in order until one returns an identity. Errors are raised only if all fail."""

    def __init__(self, authenticators: Sequence[interface.TokenAuthenticator]) -> None:
        self._authenticators = tuple(authenticators)

    async def authenticate_token(
        self, token: str, audiences: Sequence[str] | None = None
    ) -> interface.TokenIdentity | None:
        problems: list[str] = []
        for authenticator in self._authenticators:
            try:
                found = await authenticator.authenticate_token(token, audiences)
            except interface.InvalidToken as error:
                problems += error.args
                continue
            if found is not None:
                return found
        if problems:
            raise interface.InvalidToken(*problems)
        return None


class BearerAuthenticator:
    """Authenticates bearer tokens. Unknown tokens are rejected, not treated as anonymous."""

    def __init__(self, tokens: interface.TokenAuthenticator) -> None:
        self._tokens = tokens

    async def authenticate(self, request: Request) -> User | None:
        header = request.whole_header(b"authorization")
        token = bearer_token(header)
        if not token:
            if has_extra_space(header):
                request.warnings.append(EXTRA_SPACE)
            return None
        try:
            found = await self._tokens.authenticate_token(token)
        except interface.InvalidToken:
            raise Unauthorized from None
        return user_of(found, request)


def user_of(found: interface.TokenIdentity | None, request: Request) -> User:
    """Return the token's user, and add the token's warnings and annotations to the request. Raises Unauthorized."""
    if found is None:
        raise Unauthorized
    if found.remarks is not interface.NO_REMARKS:
        request.warnings.extend(found.remarks.warnings)
        for key, value in found.remarks.annotations:
            request.annotate(key, value)
    return found.user


def bearer_token(header: str) -> str:
    """Return the bearer token of an Authorization header, up to the next space; empty without a token."""
    scheme, _, rest = header.strip().partition(" ")
    return rest.partition(" ")[0] if scheme.lower() == "bearer" else ""


def has_extra_space(header: str) -> bool:
    return header.strip().lower().startswith("bearer  ")


_PREFIX = "base64url.bearer.authorization.k8s.io."
_HEADER = b"sec-websocket-protocol"
_MOST_PROTOCOLS = 64
"""Maximum number of parsed subprotocols; the request is not yet authenticated."""


class WebSocketTokenAuthenticator:
    """Authenticates bearer tokens in the subprotocol header, for browsers, which cannot set other headers."""

    def __init__(self, tokens: interface.TokenAuthenticator) -> None:
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
        except interface.InvalidToken:
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
