"""Bearer token authentication, and the union of token authenticators."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.apiserver.authn.interface import (
    NO_REMARKS,
    InvalidToken,
    TokenAuthenticator,
    TokenIdentity,
)
from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.http import Request
from pilothouse.machinery.errors import Unauthorized

EXTRA_SPACE = "the provided Authorization header contains extra space before the bearer token, and is ignored"


class UnionTokenAuthenticator:
    """Tries token authenticators in order until one returns an identity. Errors are raised only if all fail."""

    def __init__(self, authenticators: Sequence[TokenAuthenticator]) -> None:
        self._authenticators = tuple(authenticators)

    async def authenticate_token(self, token: str, audiences: Sequence[str] | None = None) -> TokenIdentity | None:
        problems: list[str] = []
        for authenticator in self._authenticators:
            try:
                found = await authenticator.authenticate_token(token, audiences)
            except InvalidToken as error:
                problems += error.args
                continue
            if found is not None:
                return found
        if problems:
            raise InvalidToken(*problems)
        return None


class BearerAuthenticator:
    """Authenticates bearer tokens. Unknown tokens are rejected, not treated as anonymous."""

    def __init__(self, tokens: TokenAuthenticator) -> None:
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
        except InvalidToken:
            raise Unauthorized from None
        return user_of(found, request)


def user_of(found: TokenIdentity | None, request: Request) -> User:
    """Return the token's user, and add the token's warnings and annotations to the request. Raises Unauthorized."""
    if found is None:
        raise Unauthorized
    if found.remarks is not NO_REMARKS:
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
