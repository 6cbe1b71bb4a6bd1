"""The union of authenticators: the first user wins.

Errors are raised only if no authenticator returns a user.
"""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.apiserver.authn.interface import Authenticator
from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.http import Request
from pilothouse.machinery.errors import Unauthorized


class UnionAuthenticator:
    """Tries authenticators in order until one returns a user; implements Authenticator.

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
