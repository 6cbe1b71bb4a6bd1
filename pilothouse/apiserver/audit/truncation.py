"""Events that are too large lose their objects, and those that still are, go."""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

_OBJECTS = ("requestObject", "responseObject")
_TRUNCATED = "audit.k8s.io/truncated"


@dataclass(frozen=True, slots=True)
class Truncation:
    max_event: int = 100 * 1024
    max_batch: int = 10 * 1024 * 1024

    def batches(self, events: list[Json]) -> Iterator[list[Json]]:
        """The events in batches of bounded size."""
        batch: list[Json] = []
        size = 0
        for event in events:
            fitted = self._fitted(event)
            if fitted is None:
                continue
            length = len(orjson.dumps(fitted))
            if batch and size + length > self.max_batch:
                yield batch
                batch, size = [], 0
            batch.append(fitted)
            size += length
        if batch:
            yield batch

    def _fitted(self, event: Json) -> Json | None:
        if len(orjson.dumps(event)) <= self.max_event:
            return event
        smaller = {key: value for key, value in event.items() if key not in _OBJECTS}
        smaller["annotations"] = (event.get("annotations") or {}) | {_TRUNCATED: "true"}
        return smaller if len(orjson.dumps(smaller)) <= self.max_event else None
