"""Max in flight: respond with 429 above a number of concurrent requests.

Reads and writes have separate limits; 0 means no limit. Long-running requests do not count. Members of system:masters
are never rejected.
"""

from __future__ import annotations

from typing import Protocol
from weakref import WeakSet

from pilothouse.apiserver.authn.user import SYSTEM_PRIVILEGED_GROUP
from pilothouse.apiserver.filters.metrics import CURRENT_INFLIGHT, DROPPED
from pilothouse.apiserver.http import Filter, Handler, Request, Response
from pilothouse.apiserver.offload import TRY_AGAIN_LATER
from pilothouse.machinery.server_errors import TooManyRequests

READ_ONLY = frozenset(("get", "list", "watch"))
_RETRY_AFTER = 1


class _Counted(Protocol):
    @property
    def count(self) -> int: ...


_COUNTED: dict[str, WeakSet[_Counted]] = {"readOnly": WeakSet(), "mutating": WeakSet()}
"""Each handler chain counts separately; the metric sums them."""


def show_in_flight(kind: str, requests: _Counted) -> None:
    """Include the count in the metric."""
    counted = _COUNTED[kind]
    counted.add(requests)
    CURRENT_INFLIGHT.labels(request_kind=kind).set_function(lambda: sum(each.count for each in counted))


class InFlight:
    """The number of requests of one kind, and its limit."""

    def __init__(self, kind: str, limit: int) -> None:
        self.limit = limit
        self.count = 0
        show_in_flight(kind, self)


def with_max_in_flight(read_only_limit: int, mutating_limit: int) -> Filter:
    def wrap(handler: Handler) -> Handler:
        reading, writing = InFlight("readOnly", read_only_limit), InFlight("mutating", mutating_limit)

        async def limit(request: Request) -> Response:
            if request.info.is_long_running:
                return await handler(request)
            kind = reading if request.info.verb in READ_ONLY else writing
            if kind.limit and kind.count >= kind.limit and SYSTEM_PRIVILEGED_GROUP not in request.user.groups:
                DROPPED.labels(request_kind="readOnly" if kind is reading else "mutating").inc()
                raise TooManyRequests.of(TRY_AGAIN_LATER, _RETRY_AFTER)
            kind.count += 1
            try:
                return await handler(request)
            finally:
                kind.count -= 1

        return limit

    return wrap
