"""The superuser without credentials, for the insecure port and in-process calls."""

from __future__ import annotations

from pilothouse.apiserver.authn.user import ALL_AUTHENTICATED, SYSTEM_PRIVILEGED_GROUP, User
from pilothouse.apiserver.http import Request

INSECURE_SUPERUSER = User("system:unsecured", groups=(SYSTEM_PRIVILEGED_GROUP, ALL_AUTHENTICATED))


class AlwaysUser:
    """Authenticates every request as a fixed user."""

    def __init__(self, user: User) -> None:
        self._user = user

    async def authenticate(self, request: Request) -> User | None:
        return self._user
