"""The requests that are under way, and how many have changed something: by which a server is known to be at rest.

Heartbeats and events never rest, and whoever watches does not work; they do not count, nor does the bench itself.
"""

from __future__ import annotations

from typing import Final

from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.bench.definitions import GROUP

_READING: Final = frozenset({"get", "list", "watch", "head", "options"})
_NEVER_AT_REST: Final = frozenset({"leases", "events", "leasecandidates"})


class Traffic:
    in_flight = 0
    changes = 0

    async def counted(self, request: Request, handler: Handler) -> Response:
        info = request.info
        if info.is_long_running or info.group == GROUP or info.resource in _NEVER_AT_REST:
            return await handler(request)
        self.in_flight += 1
        try:
            return await handler(request)
        finally:
            self.in_flight -= 1
            self.changes += info.is_resource and info.verb not in _READING
