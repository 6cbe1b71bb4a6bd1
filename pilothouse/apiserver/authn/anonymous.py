"""The user of requests without credentials."""

from __future__ import annotations

from pilothouse.apiserver.authn.user import ALL_UNAUTHENTICATED, ANONYMOUS, User

ANONYMOUS_USER = User(ANONYMOUS, groups=(ALL_UNAUTHENTICATED,))
