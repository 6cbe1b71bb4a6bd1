"""EventCorrelator: protection of the server against event floods, in three steps.

1. Aggregation: after ten different messages for the same object and reason within ten minutes, one event represents
   all that follow.
2. Counting: a repeated event is not created again; its count and last timestamp are updated.
3. Spam filter: 25 events per source and object at once, then one per five minutes.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import field

from pilothouse.client.clock import Clock
from pilothouse.client.events.event import LRU, aggregate_key, event_key, event_name, spam_key, timestamp
from pilothouse.client.flowcontrol import TokenBucket
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

CACHE_SIZE = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrelatorOptions:
    aggregate_after: int = 10
    aggregate_interval: float = 600.0
    spam_burst: int = 25
    spam_qps: float = 1 / 300


@dataclass(slots=True)
class _Aggregate:
    """Distinct messages of one aggregate key and the time of the last."""

    last: float
    messages: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _RecordedEvent:
    """Event as stored by the server."""

    name: str
    count: int
    first_timestamp: str


@dataclass(frozen=True, slots=True)
class Correlated:
    """Event to write. `patch` is None for a new event, else the changed fields of the stored event."""

    event: Json
    patch: Json | None = None


class EventCorrelator:
    def __init__(self, clock: Clock, options: CorrelatorOptions = CorrelatorOptions()) -> None:  # noqa: B008  (immutable)
        self._clock = clock
        self._options = options
        self._aggregates: LRU[Hashable, _Aggregate] = LRU(CACHE_SIZE)
        self._seen: LRU[Hashable, _RecordedEvent] = LRU(CACHE_SIZE)
        self._buckets: LRU[Hashable, TokenBucket] = LRU(CACHE_SIZE)

    def correlate(self, event: Json) -> Correlated | None:
        """Return the event to write, or None if the spam filter rejects it."""
        event, key = self._aggregate(event)
        correlated = self._count(event, key)
        return None if self._is_spam(correlated.event) else correlated

    def written(self, event: Json) -> None:
        """Record the state of the event on the server."""
        self._remember(event_key(event), event)

    def _aggregate(self, event: Json) -> tuple[Json, Hashable]:
        now = self._clock.now()
        key = aggregate_key(event)
        aggregate = self._aggregates.get(key)
        if aggregate is None or now - aggregate.last > self._options.aggregate_interval:
            aggregate = _Aggregate(now)
        aggregate.messages.add(event["message"])
        aggregate.last = now
        self._aggregates.put(key, aggregate)
        if len(aggregate.messages) < self._options.aggregate_after:
            return event, event_key(event)
        aggregate.messages.pop()  # keeps the set at its limit
        return self._combined(event), key

    def _combined(self, event: Json) -> Json:
        """Build the combined event. As upstream, only its source is set, not its reporter."""
        wall = self._clock.wall()
        name = event_name(event["involvedObject"]["name"], wall)
        return {
            **{field: value for field, value in event.items() if not field.startswith("reporting")},
            "metadata": {"name": name, "namespace": event["metadata"]["namespace"]},
            "message": f"(combined from similar events): {event['message']}",
            "firstTimestamp": timestamp(wall),
            "lastTimestamp": timestamp(wall),
            "count": 1,
        }

    def _count(self, event: Json, key: Hashable) -> Correlated:
        seen = self._seen.get(key)
        if seen is None:
            self._remember(key, event)
            return Correlated(event)
        repeated = {
            **event,
            "metadata": {**event["metadata"], "name": seen.name},
            "firstTimestamp": seen.first_timestamp,
            "count": seen.count + 1,
        }
        self._remember(key, repeated)
        patch = {name: repeated[name] for name in ("count", "lastTimestamp", "message")}
        return Correlated(repeated, patch)

    def _remember(self, key: Hashable, event: Json) -> None:
        self._seen.put(key, _RecordedEvent(event["metadata"]["name"], event["count"], event["firstTimestamp"]))

    def _is_spam(self, event: Json) -> bool:
        key = spam_key(event)
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = TokenBucket(self._options.spam_qps, self._options.spam_burst, self._clock)
        self._buckets.put(key, bucket)
        return not bucket.try_accept()
