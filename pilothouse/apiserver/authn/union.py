"""Several authenticators in order: the first that knows the user decides; wrong credentials are final."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.apiserver.authn.interface import Authenticator
from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.http import Request


class UnionAuthenticator:
    def __init__(self, authenticators: Sequence[Authenticator]) -> None:
        self.authenticators = tuple(authenticators)

    async def authenticate(self, request: Request) -> User | None:
        for authenticator in self.authenticators:
            user = await authenticator.authenticate(request)
            if user is not None:
                return user
        return None
