"""UserInfo of the API."""

from __future__ import annotations

from pilothouse.apiserver.authn.user import User
from pilothouse.machinery.objects import Json


def user_info(user: User) -> Json:
    parts: Json = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in sorted(user.extra.items())},
    }
    return {name: value for name, value in parts.items() if value}
