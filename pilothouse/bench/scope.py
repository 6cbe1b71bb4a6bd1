"""The time and the workers of a server with --testing: whatever its tasks make belongs to them."""

from __future__ import annotations

from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.client.idleness import Workers, registered_workers
from pilothouse.machinery.adjustable_time import AdjustableTime
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.server_time import go_by, going_by


@dataclass(frozen=True, slots=True)
class ServerScope:
    time: AdjustableTime
    workers: Workers

    def around(self, handler: Handler) -> Handler:
        """Have each request go by this time, in whatever task it comes."""

        async def answer(request: Request) -> Response:
            with going_by(self.time):
                return await handler(request)

        return answer


def new_scope() -> ServerScope:
    """Begin a scope in this task."""
    scope = ServerScope(AdjustableTime(), registered_workers())
    go_by(scope.time)
    return scope
