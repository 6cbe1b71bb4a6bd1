"""EventRateLimit: limits the rate of Events per server, namespace, user, or source and object.

Each key of a limit has a token bucket; an LRU cache bounds the number of buckets.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator

from pilothouse.apiserver.admission.interface import Attributes, Handler, Operation
from pilothouse.client.clock import REAL_CLOCK, Clock
from pilothouse.client.flowcontrol import TokenBucket
from pilothouse.machinery.bounded_cache import BoundedCache
from pilothouse.machinery.field import Errors, invalid, not_supported, root
from pilothouse.machinery.objects import Json
from pilothouse.machinery.server_errors import TooManyRequests
from pilothouse.machinery.status_error import aggregate

_CACHE_SIZE = 4096
_BUCKET_BYTES = 512
_LONGEST_KEY = 128
"""Longer keys are replaced by a digest: clients choose the contents of Events."""


def _source_and_object(attributes: Attributes) -> str:
    event = attributes.obj or {}
    source, involved = event.get("source") or {}, event.get("involvedObject") or {}
    parts = [source.get("component"), source.get("host")]
    parts += [involved.get(field) for field in ("kind", "namespace", "name", "uid", "apiVersion")]
    return "".join(part or "" for part in parts)


_KEYS: dict[str, Callable[[Attributes], str]] = {
    "Server": lambda _: "",
    "Namespace": lambda attributes: attributes.namespace,
    "User": lambda attributes: attributes.user.name,
    "SourceAndObject": _source_and_object,
}


class _Limit:
    def __init__(self, limit: Json, clock: Clock) -> None:
        self._type = limit["type"]
        self._rate, self._burst = float(limit["qps"]), int(limit["burst"])
        size = int(limit.get("cacheSize") or _CACHE_SIZE)
        self._clock = clock
        # At least 16, because an entry may use at most a sixteenth of the budget.
        self._buckets: BoundedCache[str, TokenBucket] = BoundedCache(
            entries=size, total_bytes=max(size, 16) * _BUCKET_BYTES
        )

    def refusal(self, attributes: Attributes) -> str:
        """Return the reason to reject the Event now, or an empty string."""
        key = _KEYS[self._type](attributes)
        kept_as = key if len(key) <= _LONGEST_KEY else hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()
        bucket = self._buckets.get(kept_as)
        if bucket is None:
            bucket = TokenBucket(self._rate, self._burst, self._clock)
            self._buckets.put(kept_as, bucket, size=_BUCKET_BYTES)
        return "" if bucket.try_accept() else f"limit reached on type {self._type} for key {key}"


class EventRateLimit(Handler):
    name = "EventRateLimit"
    operations = (Operation.CREATE, Operation.UPDATE)

    def __init__(self, configuration: Json, clock: Clock = REAL_CLOCK) -> None:
        """Raise ValueError for an invalid configuration."""
        if problems := [str(error) for error in _problems(configuration)]:
            raise ValueError(f"EventRateLimit: {'; '.join(problems)}")
        self._limits = [_Limit(limit, clock) for limit in configuration["limits"]]

    async def validate(self, attributes: Attributes) -> None:
        # Upstream does not count events.k8s.io either.
        if attributes.kind.group or attributes.kind.kind != "Event" or attributes.dry_run:
            return
        refusals = [reason for limit in self._limits if (reason := limit.refusal(attributes))]
        if refusals:
            raise TooManyRequests(f"Too many requests: {aggregate(refusals)}")


def _problems(configuration: Json) -> Errors:
    limits = configuration.get("limits") or []
    if not limits:
        yield invalid(root("limits"), None, "must not be empty")
    for index, limit in enumerate(limits):
        path = root("limits").index(index)
        if limit.get("type") not in _KEYS:
            yield not_supported(path.child("type"), limit.get("type") or "", sorted(_KEYS))
        for field in _not_positive(limit):
            yield invalid(path.child(field), limit.get(field) or 0, "must be positive")
        if (size := limit.get("cacheSize") or 0) < 0:
            yield invalid(path.child("cacheSize"), size, "must not be negative")


def _not_positive(limit: Json) -> Iterator[str]:
    return (field for field in ("burst", "qps") if not (limit.get(field) or 0) > 0)
