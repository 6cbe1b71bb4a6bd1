"""User identities, upstream's reserved names, and UserInfo of the API."""

from __future__ import annotations

from dataclasses import field
from itertools import chain

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

ANONYMOUS = "system:anonymous"
ALL_UNAUTHENTICATED = "system:unauthenticated"
ALL_AUTHENTICATED = "system:authenticated"
SYSTEM_PRIVILEGED_GROUP = "system:masters"
API_SERVER_USER = "system:apiserver"


@dataclass(frozen=True, slots=True)
class User:
    """The identity of a client.

    >>> from pilothouse.apiserver import User
    >>> User("jane", groups=("developers",)).groups
    ('developers',)
    """

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = field(default_factory=dict, hash=False)

    @property
    def size(self) -> int:
        """Return the approximate size in bytes."""
        texts = (self.name, self.uid, *self.groups, *self.extra, *chain.from_iterable(self.extra.values()))
        return 256 + sum(64 + len(text) for text in texts)


ANONYMOUS_USER = User(ANONYMOUS, groups=(ALL_UNAUTHENTICATED,))


def user_info(user: User) -> Json:
    parts: Json = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in sorted(user.extra.items())},
    }
    return {name: value for name, value in parts.items() if value}
