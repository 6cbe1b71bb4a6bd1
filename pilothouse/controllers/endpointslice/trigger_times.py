"""Trigger times of endpoint changes, from which proxies measure programming latency."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from pilothouse.client.cache.keys import meta_namespace_key
from pilothouse.kinds.pods import ready_condition
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, metadata, name_of
from pilothouse.machinery.times import format_time, optional_time

ANNOTATION = "endpoints.kubernetes.io/last-change-trigger-time"


@dataclass(frozen=True, slots=True)
class _SeenTimes:
    service: datetime | None
    pods: dict[str, datetime]


class TriggerTimeTracker:
    _seen: dict[str, _SeenTimes]  # by service key

    def __init__(self) -> None:
        self._seen = {}

    def compute(self, service: Json, pods: Sequence[Json]) -> str:
        """Return the earliest time of the changes since the last call; empty without changes."""
        key, created = meta_namespace_key(service), optional_time(metadata(service).get("creationTimestamp"))
        ready = {name_of(pod): optional_time(ready_condition(pod).get("lastTransitionTime")) for pod in pods}
        times = {name: moment for name, moment in ready.items() if moment is not None}
        before = self._seen.get(key)
        self._seen[key] = _SeenTimes(created, times)
        if before is None:
            return _written(created)
        changed = [moment for name, moment in times.items() if _is_later(moment, before.pods.get(name))]
        if created is not None and _is_later(created, before.service):
            changed.append(created)
        return _written(min(changed, default=None))

    def forget(self, key: str) -> None:
        self._seen.pop(key, None)


def with_trigger_time(annotations: dict[str, str], trigger_time: str) -> dict[str, str]:
    kept = {name: value for name, value in annotations.items() if name != ANNOTATION}
    return kept | ({ANNOTATION: trigger_time} if trigger_time else {})


def _is_later(moment: datetime, before: datetime | None) -> bool:
    return before is None or moment > before


def _written(moment: datetime | None) -> str:
    return "" if moment is None else format_time(moment)
