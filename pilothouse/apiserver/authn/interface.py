"""The contract of authenticators, their union, and the validated construction of users from credentials.

Authenticators return the user of a request or token, or None for unknown credentials.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Protocol

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.http import Request
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import Unauthorized


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


class UnionAuthenticator:
    """Tries authenticators in order until one returns a user; implements Authenticator. Errors are raised only if no
    authenticator returns a user.

    >>> from pilothouse.apiserver import UnionAuthenticator
    >>> UnionAuthenticator([]).authenticators
    ()
    """

    def __init__(self, authenticators: Sequence[Authenticator]) -> None:
        self.authenticators = tuple(authenticators)

    async def authenticate(self, request: Request) -> User | None:
        refused: Unauthorized | None = None
        for authenticator in self.authenticators:
            try:
                user = await authenticator.authenticate(request)
            except Unauthorized as error:
                refused = error
                continue
            if user is not None:
                return user
        if refused is not None:
            raise refused
        return None


_CONTROL = re.compile(r"[\x00-\x1f\x7f]").search


class InvalidIdentity(InvalidToken):
    """The credentials contain an invalid name, uid, group or extra."""


def identity(
    name: str, *, uid: str = "", groups: Sequence[str] = (), extra: Mapping[str, Sequence[str]] | None = None
) -> User:
    """Build a user without control characters in any field. All authenticators use this function. Raises
    InvalidIdentity.

    Names and groups are forwarded in headers to aggregated servers and webhooks, and written to logs. A line break in a
    name could inject further identities.
    """
    user = User(name, uid, tuple(groups), {key: tuple(values) for key, values in (extra or {}).items()})
    _check(user)
    return user


def _check(user: User) -> None:
    """Raise InvalidIdentity for control characters. The message names the field without its value."""
    if _CONTROL(user.name):
        raise InvalidIdentity("the user name contains control characters")
    if _CONTROL(user.uid):
        raise InvalidIdentity("the UID contains control characters")
    if _CONTROL("".join(user.groups)):
        raise InvalidIdentity("a group contains control characters")
    for key, values in user.extra.items():
        if _CONTROL(key) or _CONTROL("".join(values)):
            raise InvalidIdentity("an extra contains control characters")
