"""The manager of a write: what the request says, else what its user agent is called."""

from __future__ import annotations

from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.machinery.validation.object_meta import FIELD_MANAGER_MAX_LENGTH


def manager_or_user_agent(manager: str, user_agent: str) -> str:
    return manager or _prefix(user_agent)


@bounded_cache(entries=1024, key_bytes=512)
def _prefix(user_agent: str) -> str:
    """`kubectl/v1.36.4 (linux/amd64) …` → `kubectl`, as much of it as a manager's name may be long."""
    out, size = [], 0
    for char in user_agent.partition("/")[0]:
        if not char.isprintable():
            continue
        size += len(char.encode())
        if size > FIELD_MANAGER_MAX_LENGTH:
            break
        out.append(char)
    return "".join(out)
