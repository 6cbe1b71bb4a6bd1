"""Static credentials: the token file, the token of the loopback client, and the superuser of the insecure port."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from pilothouse.apiserver.authn.interface import InvalidIdentity, TokenIdentity, accepted_audiences, identity
from pilothouse.apiserver.authn.user import ALL_AUTHENTICATED, API_SERVER_USER, SYSTEM_PRIVILEGED_GROUP, User
from pilothouse.apiserver.http import Request


class StaticTokens:
    """Authenticates static tokens, valid for the server's own audiences only.

    Tokens are stored and looked up as SHA-256 digests, so lookup times reveal nothing.
    """

    def __init__(self, users: Mapping[str, User], audiences: Sequence[str] = ()) -> None:
        self._audiences = tuple(audiences)
        self._known = {_digest(token): TokenIdentity(user, self._audiences) for token, user in users.items()}

    async def authenticate_token(self, token: str, audiences: Sequence[str] | None = None) -> TokenIdentity | None:
        meant_for = accepted_audiences(self._audiences, audiences)
        if meant_for is None:
            return None
        known = self._known.get(_digest(token))
        return known if known is None or audiences is None else TokenIdentity(known.user, meant_for)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def read_token_file(path: Path) -> dict[str, User]:
    """Read a --token-auth-file with lines of token,user,uid[,"group1,group2"]. Raises ValueError."""
    users: dict[str, User] = {}
    with path.open(newline="", encoding="utf-8") as file:
        for number, row in enumerate(csv.reader(file), start=1):
            fields = [field.strip() for field in row]
            if not fields or fields[0].startswith("#"):
                continue
            if len(fields) < 3:
                raise ValueError(f"{path}:{number}: expected at least 3 columns (token, user name, user uid)")
            groups = [group.strip() for group in fields[3].split(",")] if len(fields) > 3 and fields[3] else []
            try:
                users[fields[0]] = identity(fields[1], uid=fields[2], groups=(*groups, ALL_AUTHENTICATED))
            except InvalidIdentity as error:
                raise ValueError(f"{path}:{number}: {error}") from None
    return users


def loopback_user() -> User:
    return User(API_SERVER_USER, groups=(SYSTEM_PRIVILEGED_GROUP, ALL_AUTHENTICATED))


INSECURE_SUPERUSER = User("system:unsecured", groups=(SYSTEM_PRIVILEGED_GROUP, ALL_AUTHENTICATED))


class AlwaysUser:
    """Authenticates every request as a fixed user."""

    def __init__(self, user: User) -> None:
        self._user = user

    async def authenticate(self, request: Request) -> User | None:
        return self._user
