"""The superuser, without credentials: for the insecure port, and for the server when it calls itself."""

from __future__ import annotations

from pilothouse.apiserver.authn.user import ALL_AUTHENTICATED, SYSTEM_PRIVILEGED_GROUP, User
from pilothouse.apiserver.http import Request

INSECURE_SUPERUSER = User("system:unsecured", groups=(SYSTEM_PRIVILEGED_GROUP, ALL_AUTHENTICATED))


class AlwaysUser:
    """Every request is made by this user, whatever it shows."""

    def __init__(self, user: User) -> None:
        self._user = user

    async def authenticate(self, request: Request) -> User | None:
        return self._user
