"""One fault that is in force: its spec as it is gone by, and what it has hit."""

from __future__ import annotations

import random
from math import inf

from pilothouse.apiserver.http import Request
from pilothouse.bench.faults.matching import Match
from pilothouse.machinery.durations import parse_duration
from pilothouse.machinery.errors_by_reason import from_status
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import StatusError
from pilothouse.machinery.times import now

_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    413: "RequestEntityTooLarge",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class Fault:
    """Hits are counted from its creation on; a change of its spec changes what is hit, not the count."""

    def __init__(self, name: str, obj: Json, before: Fault | None = None) -> None:
        spec = obj["spec"]
        match, self.effect = spec.get("match") or {}, spec["effect"]
        self.name = name
        self.spec: Json = spec
        self.match = Match.of(match)
        self._rate: float = match.get("rate", 1)
        self._times: float = match.get("times", inf)
        status = before.status if before else obj.get("status") or {}
        self.hits: int = status.get("hits") or 0
        self.last_hit: str = status.get("lastHit") or ""

    def hit(self, request: Request, *, own: bool) -> bool:
        """Whether this request is hit; one that is counts."""
        if self.hits >= self._times or not self.match.fits(request, own=own):
            return False
        if self._rate < 1 and random.random() >= self._rate:
            return False
        self.hits += 1
        self.last_hit = f"{request.user.name} {request.info.verb} {request.path} {now()}"
        return True

    @property
    def delay(self) -> float:
        """Seconds, chosen anew each time."""
        given = self.effect.get("delay") or {}
        return _seconds(given.get("duration")) + random.random() * _seconds(given.get("jitter"))

    @property
    def refusal(self) -> StatusError | None:
        given = self.effect.get("answer")
        if given is None:
            return None
        code = given["code"]
        status: Json = {
            "code": code,
            "reason": given.get("reason") or _REASONS.get(code, ""),
            "message": given.get("message") or f"this is what the Fault {self.name} answers",
        }
        if wait := given.get("retryAfterSeconds"):
            status["details"] = {"retryAfterSeconds": wait}
        return from_status(status)

    @property
    def status(self) -> Json:
        status: Json = {"hits": self.hits, "effect": _in_words(self.effect)}
        return status | ({"lastHit": self.last_hit} if self.last_hit else {})


def _seconds(duration: str | None) -> float:
    return max(parse_duration(duration), 0) / 1e9 if duration else 0.0


def _in_words(effect: Json) -> str:
    words = []
    if delay := effect.get("delay"):
        words.append(f"delay {delay['duration']}")
    if answer := effect.get("answer"):
        words.append(f"answer {answer['code']}")
    if cut := effect.get("cut"):
        words.append(f"cut {cut.lower()}")
    if lag := effect.get("staleByRevisions"):
        words.append(f"stale by {lag}")
    if effect.get("closeConnections"):
        words.append("close connections")
    words.extend(f"watch {name} {number}" for name, number in (effect.get("watch") or {}).items())
    return ", ".join(words)
