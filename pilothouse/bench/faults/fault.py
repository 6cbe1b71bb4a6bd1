"""An active fault: its matching rules and its hit count."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Sequence
from math import inf

from pilothouse.apiserver.http import Request
from pilothouse.apiserver.request_info import RequestInfo
from pilothouse.bench.definitions import GROUP
from pilothouse.machinery.dataclass import dataclass
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
    """An active fault. Hits are counted from its creation; a changed spec keeps the count."""

    def __init__(self, name: str, obj: Json, before: Fault | None = None) -> None:
        spec = obj["spec"]
        match, self.effect = spec.get("match") or {}, spec["effect"]
        self.name = name
        self.spec: Json = spec
        self.match = Match.of(match)
        self._rate: float = match.get("rate", 1)
        self._times: float = match.get("times", inf)
        self._skip: int = match.get("skip") or 0
        status = before.status if before else obj.get("status") or {}
        self.hits: int = status.get("hits") or 0
        self.last_hit: str = status.get("lastHit") or ""
        self.passed: int = before.passed if before else 0
        """Matching requests before the first hit."""
        self.passed_events: int = before.passed_events if before else 0
        self.deleted: asyncio.Event = before.deleted if before else asyncio.Event()
        """Set when the fault is deleted: held requests and events go on."""
        self.reached: asyncio.Event = before.reached if before else asyncio.Event()
        """Set at the first hit, and for effects on events at the first event."""

    def hit(self, request: Request, name: str, *, own: bool) -> bool:
        """Whether this request for the object `name` is hit. Counts the hit."""
        if self.hits >= self._times or not self.match.fits(request, name, own=own):
            return False
        if self.passed < self._skip:
            self.passed += 1
            return False
        if self._rate < 1 and random.random() >= self._rate:
            return False
        if "events" not in self.effect:
            self.reached.set()
        self.hits += 1
        self.last_hit = f"{request.user.name} {request.info.verb} {request.path} {now()}"
        return True

    @property
    def delay(self) -> float:
        """Delay in seconds, with new jitter each time."""
        delay = self.effect.get("delay") or {}
        return _seconds(delay.get("duration")) + random.random() * _seconds(delay.get("jitter"))

    @property
    def refusal(self) -> StatusError | None:
        answer = self.effect.get("answer")
        if answer is None:
            return None
        code = answer["code"]
        status: Json = {
            "code": code,
            "reason": answer.get("reason") or _REASONS.get(code, ""),
            "message": answer.get("message") or f"injected by the Fault {self.name}",
        }
        if wait := answer.get("retryAfterSeconds"):
            status["details"] = {"retryAfterSeconds": wait}
        return from_status(status)

    @property
    def status(self) -> Json:
        effect = self.effect
        words = []
        if delay := effect.get("delay"):
            words.append(f"delay {delay['duration']}")
        if answer := effect.get("answer"):
            words.append(f"answer {answer['code']}")
        if cut := effect.get("cut"):
            words.append(f"cut {cut.lower()}")
        if hold := effect.get("hold"):
            words.append(f"hold {hold.lower()}")
        if events := effect.get("events"):
            words.append(f"events {events['effect']}")
        if revision := effect.get("atRevision"):
            words.append(f"at revision {revision}")
        if lag := effect.get("staleByRevisions"):
            words.append(f"stale by {lag}")
        if effect.get("closeConnections"):
            words.append("close connections")
        words.extend(f"watch {name} {number}" for name, number in (effect.get("watch") or {}).items())
        status: Json = {"hits": self.hits, "effect": ", ".join(words)}
        return status | ({"lastHit": self.last_hit} if self.last_hit else {})


def _seconds(duration: str | None) -> float:
    return max(parse_duration(duration), 0) / 1e9 if duration else 0.0


@dataclass(frozen=True, slots=True)
class Selector:
    """Selects clients by user name and User-Agent prefix. Empty tuples match all."""

    users: tuple[str, ...] = ()
    user_agents: tuple[str, ...] = ()

    @classmethod
    def of(cls, spec: Json) -> Selector:
        return cls(tuple(spec.get("users") or ()), tuple(spec.get("userAgents") or ()))

    def fits(self, user: str, agent: str, *, own: bool = False) -> bool:
        """Whether the client matches. With `own` (a loopback call of the server), the user must be named."""
        if own and not self.users:
            return False
        return fits_pattern(self.users, user) and (not self.user_agents or agent.startswith(self.user_agents))


@dataclass(frozen=True, slots=True)
class Match:
    """spec.match of a Fault, without rate and times."""

    who: Selector = Selector()
    verbs: frozenset[str] = frozenset()
    resources: frozenset[str] = frozenset()
    namespaces: frozenset[str] = frozenset()
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, spec: Json) -> Match:
        verbs, resources, namespaces = (frozenset(spec.get(key) or ()) for key in ("verbs", "resources", "namespaces"))
        return cls(Selector.of(spec), verbs - {"*"}, resources, namespaces, tuple(spec.get("names") or ()))

    def fits(self, request: Request, name: str, *, own: bool) -> bool:
        info = request.info
        return (
            (not self.verbs or info.verb in self.verbs)
            and self._fits_resource(info)
            and (not self.namespaces or info.namespace in self.namespaces)
            and fits_pattern(self.names, name)
            and self.who.fits(request.user.name, request.header(b"user-agent"), own=own)
        )

    def _fits_resource(self, info: RequestInfo) -> bool:
        """Whether the resource matches. The test bench must be named explicitly; otherwise the fault could not be
        removed.
        """
        if not self.resources or "*" in self.resources:
            return info.group != GROUP and (info.is_resource or not self.resources)
        return info.is_resource and not self.resources.isdisjoint(_spellings(info))


def _spellings(info: RequestInfo) -> Iterable[str]:
    """Return the names that match the request: with and without group, and wildcards."""
    behind = f"/{info.subresource}" if info.subresource else ""
    names = [f"{info.resource}.{info.group}" + behind]
    if info.group != GROUP:
        names.append(info.resource + behind)
    return [*names, f"*{behind}", *([f"{info.resource}/*"] if behind else [])]


def fits_pattern(patterns: Sequence[str], value: str) -> bool:
    """Whether the value matches a pattern; a trailing * is a wildcard. No patterns match every value."""
    return not patterns or any(
        value.startswith(pattern[:-1]) if pattern.endswith("*") else value == pattern for pattern in patterns
    )
