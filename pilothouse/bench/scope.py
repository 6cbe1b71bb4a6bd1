"""The time and the workers of a server with --testing, and its traffic."""

from __future__ import annotations

from typing import Final

from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.bench.definitions import GROUP
from pilothouse.client.idleness import Workers, registered_workers
from pilothouse.machinery.adjustable_time import AdjustableTime
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.server_time import go_by, going_by


@dataclass(frozen=True, slots=True)
class ServerScope:
    """Adjustable time and busy workers of one server."""

    time: AdjustableTime
    workers: Workers

    def around(self, handler: Handler) -> Handler:
        """Wrap a handler: the time of its requests is the time of this server."""

        async def answer(request: Request) -> Response:
            with going_by(self.time):
                return await handler(request)

        return answer


def new_scope() -> ServerScope:
    """Start a scope in the current task."""
    scope = ServerScope(AdjustableTime(), registered_workers())
    go_by(scope.time)
    return scope


_READ_VERBS: Final = frozenset({"get", "list", "watch", "head", "options"})
_PERIODIC: Final = frozenset({"leases", "events", "leasecandidates"})


class Traffic:
    """Counts requests in flight and writes, to detect quiescence."""

    in_flight = 0
    changes = 0

    async def counted(self, request: Request, handler: Handler) -> Response:
        info = request.info
        if info.is_long_running or info.group == GROUP or info.resource in _PERIODIC:
            return await handler(request)
        self.in_flight += 1
        try:
            return await handler(request)
        finally:
            self.in_flight -= 1
            self.changes += info.is_resource and info.verb not in _READ_VERBS
