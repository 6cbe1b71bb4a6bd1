"""The contract of an authenticator: who makes this request, or None where it cannot tell."""

from __future__ import annotations

from typing import Protocol

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.http import Request


class Authenticator(Protocol):
    async def authenticate(self, request: Request) -> User | None:
        """None: no credentials that this authenticator knows. Raises Unauthorized for credentials that are wrong."""
