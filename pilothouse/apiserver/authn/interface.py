"""The contract of authenticators: who makes this request or has this token, or None where they cannot tell."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Protocol

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.http import Request
from pilothouse.machinery.dataclass import dataclass


class Authenticator(Protocol):
    """Says who makes a request.

    >>> from pilothouse.apiserver import Authenticator, Request, User
    >>> class ByHeader:
    ...     async def authenticate(self, request: Request) -> User | None:
    ...         name = request.header(b"x-user")
    ...         return User(name) if name else None
    >>> authenticator: Authenticator = ByHeader()
    """

    async def authenticate(self, request: Request) -> User | None:
        """None: no credentials that this authenticator knows. Raises Unauthorized for wrong ones."""


@dataclass(frozen=True, slots=True)
class TokenRemarks:
    """Remarks on the use of a token, for its user (warnings) and for the audit log (annotations)."""

    warnings: tuple[str, ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()


NO_REMARKS = TokenRemarks()


@dataclass(frozen=True, slots=True)
class TokenIdentity:
    user: User
    audiences: tuple[str, ...] = ()
    """The audiences that the token is meant for, of those asked for."""
    remarks: TokenRemarks = NO_REMARKS

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        texts = (*self.audiences, *self.remarks.warnings, *chain.from_iterable(self.remarks.annotations))
        return self.user.size + sum(64 + len(text) for text in texts)


def accepted_audiences(own: tuple[str, ...], asked: Sequence[str] | None) -> tuple[str, ...] | None:
    """Of a token that is meant for the server's own audiences, whoever made it: those that were asked for, or None
    where there is none."""
    return own if asked is None else tuple(audience for audience in asked if audience in own) or None


class InvalidToken(Exception):
    """A token of the authenticator's own kind that is not good; the arguments say why, one reason each."""


class TokenAuthenticator(Protocol):
    async def authenticate_token(self, token: str, audiences: Sequence[str] | None = None) -> TokenIdentity | None:
        """None: not a token that this authenticator knows. Raises InvalidToken.

        `audiences`: whom the token must be meant for, any of them; the server itself where None.
        """
