"""Validated construction of users from credentials, without control characters in any field.

Names and groups are forwarded in headers to aggregated servers and webhooks, and written to logs. A line break in a
name could inject further identities.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pilothouse.apiserver.authn.interface import InvalidToken
from pilothouse.apiserver.authn.user import User

_CONTROL = re.compile(r"[\x00-\x1f\x7f]").search


class InvalidIdentity(InvalidToken):
    """The credentials contain an invalid name, uid, group or extra."""


def identity(
    name: str, *, uid: str = "", groups: Sequence[str] = (), extra: Mapping[str, Sequence[str]] | None = None
) -> User:
    """Build a user; all authenticators use this function. Raises InvalidIdentity."""
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
