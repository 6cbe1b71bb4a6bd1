"""The contract of authenticators: return the user of a request or token, or None for unknown credentials."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Protocol

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.http import Request
from pilothouse.machinery.dataclass import dataclass


class Authenticator(Protocol):
    """Authenticates requests.

    >>> from pilothouse.apiserver import Authenticator, Request, User
    >>> class ByHeader:
    ...     async def authenticate(self, request: Request) -> User | None:
    ...         name = request.header(b"x-user")
    ...         return User(name) if name else None
    >>> authenticator: Authenticator = ByHeader()
    """

    async def authenticate(self, request: Request) -> User | None:
        """Return the user, or None for unknown credentials. Raises Unauthorized for invalid credentials."""


@dataclass(frozen=True, slots=True)
class TokenRemarks:
    """Remarks on a token: warnings for the client, annotations for the audit log."""

    warnings: tuple[str, ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()


NO_REMARKS = TokenRemarks()


@dataclass(frozen=True, slots=True)
class TokenIdentity:
    user: User
    audiences: tuple[str, ...] = ()
    """The intersection of requested and token audiences."""
    remarks: TokenRemarks = NO_REMARKS

    @property
    def size(self) -> int:
        """Return the approximate size in bytes."""
        texts = (*self.audiences, *self.remarks.warnings, *chain.from_iterable(self.remarks.annotations))
        return self.user.size + sum(64 + len(text) for text in texts)


def accepted_audiences(own: tuple[str, ...], asked: Sequence[str] | None) -> tuple[str, ...] | None:
    """Return the requested audiences among the server's own audiences, or None without overlap."""
    return own if asked is None else tuple(audience for audience in asked if audience in own) or None


class InvalidToken(Exception):
    """An invalid token of the authenticator's type; each argument is a reason."""


class TokenAuthenticator(Protocol):
    async def authenticate_token(self, token: str, audiences: Sequence[str] | None = None) -> TokenIdentity | None:
        """Return the identity, or None for an unknown token. Raises InvalidToken.

        `audiences`: accepted audiences, at least one of which the token must have; None = the server's own.
        """
