"""The insecure port's one user."""

from __future__ import annotations

from pilothouse.apiserver.authn.user import SYSTEM_PRIVILEGED_GROUP, User
from pilothouse.apiserver.http import Request

_SUPERUSER = User("system:unsecured", groups=(SYSTEM_PRIVILEGED_GROUP, "system:authenticated"))


class InsecureSuperuser:
    """Everyone who can reach the insecure port may do everything."""

    async def authenticate(self, request: Request) -> User | None:
        return _SUPERUSER
