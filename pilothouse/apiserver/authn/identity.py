"""Identities: the users that authenticators make of credentials. None has a control character in any of its parts.

Names and groups go on in headers, to servers behind this one and to webhooks, and into logs. One with a line break in
it could claim to be several.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pilothouse.apiserver.authn.interface import InvalidToken
from pilothouse.apiserver.authn.user import User

_CONTROL = re.compile(r"[\x00-\x1f\x7f]").search


class InvalidIdentity(InvalidToken):
    """The credentials are those of somebody who cannot be named."""


def identity(
    name: str, *, uid: str = "", groups: Sequence[str] = (), extra: Mapping[str, Sequence[str]] | None = None
) -> User:
    """The one way in which authenticators make users. Raises InvalidIdentity."""
    user = User(name, uid, tuple(groups), {key: tuple(values) for key, values in (extra or {}).items()})
    _check(user)
    return user


def _check(user: User) -> None:
    """Raises InvalidIdentity, which names the part but does not repeat it."""
    if _CONTROL(user.name):
        raise InvalidIdentity("the user name contains control characters")
    if _CONTROL(user.uid):
        raise InvalidIdentity("the UID contains control characters")
    if _CONTROL("".join(user.groups)):
        raise InvalidIdentity("a group contains control characters")
    for key, values in user.extra.items():
        if _CONTROL(key) or _CONTROL("".join(values)):
            raise InvalidIdentity("an extra contains control characters")
