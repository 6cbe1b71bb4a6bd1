"""The most recent requests, in memory: /debug/requests."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import field
from datetime import UTC, datetime

from pilothouse.apiserver.http import Filter, Handler, Headers, Request, Response, raw_json
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

PATH = "/debug/requests"
_MAX_LENGTH = 1024
_MAX_GROUPS = 16
"""A recorded request stays in memory after its end: its texts and the number of its groups are bounded."""
_FLOW_HEADERS = {
    b"x-kubernetes-pf-flowschema-uid": "flowSchema",
    b"x-kubernetes-pf-prioritylevel-uid": "priorityLevel",
}


@dataclass(frozen=True, slots=True)
class SeenRequest:
    """One request and its response. `seconds` ends when the response starts, also for a watch."""

    at: float
    user: str
    agent: str
    method: str
    target: str
    code: int
    seconds: float
    warnings: tuple[str, ...]
    audit_id: str
    groups: tuple[str, ...] = ()
    headers: Headers = field(default_factory=list)
    """Additional headers of the response; flow control names its decision there."""

    def shown(self) -> Json:
        """Return the entry of /debug/requests, with the uids of the flow schema and priority level."""
        named = {name.lower(): value.decode("latin-1") for name, value in self.headers if name.lower() in _FLOW_HEADERS}
        return {
            "time": datetime.fromtimestamp(self.at, UTC).isoformat(),
            "user": self.user,
            "userAgent": self.agent,
            "method": self.method,
            "target": self.target,
            "code": self.code,
            "seconds": round(self.seconds, 6),
            "warnings": list(self.warnings),
            "auditID": self.audit_id,
            "groups": list(self.groups),
            **{_FLOW_HEADERS[name]: value for name, value in named.items()},
        }


class RecentRequests:
    """Holds the newest `most` requests."""

    def __init__(self, most: int) -> None:
        self._seen: deque[SeenRequest] = deque(maxlen=most)

    def add(self, seen: SeenRequest) -> None:
        self._seen.append(seen)

    async def answer(self, request: Request) -> Response:
        """Respond with all held requests, oldest first, without the current one."""
        return raw_json(200, {"requests": [seen.shown() for seen in self._seen]})


def with_recent_requests(recent: RecentRequests | None) -> Filter:
    """Record every request. A no-op without a recorder."""

    def wrap(handler: Handler) -> Handler:
        async def note(request: Request) -> Response:
            assert recent is not None
            at, start, code = time.time(), time.perf_counter(), 0
            try:
                response = await handler(request)
                code = 101 if response.upgrade else response.status
                return response
            finally:
                recent.add(_seen(request, at, code, time.perf_counter() - start))

        return note if recent is not None else handler

    return wrap


def _seen(request: Request, at: float, code: int, seconds: float) -> SeenRequest:
    user, groups = ("", ()) if request.user is None else (request.user.name, request.user.groups)
    query = f"?{request.query_string}" if request.query_string else ""
    target = f"{request.path}{query}"[:_MAX_LENGTH]
    agent = request.header(b"user-agent")[:_MAX_LENGTH]
    warnings = tuple(request.warnings)
    entry = (
        at,
        user[:_MAX_LENGTH],
        agent,
        request.method,
        target,
        code,
        seconds,
        warnings,
        request.audit_id[:_MAX_LENGTH],
    )
    shown = tuple([group[:_MAX_LENGTH] for group in groups[:_MAX_GROUPS]])
    return SeenRequest(*entry, groups=shown, headers=request.answer_headers)
