"""Size limits of audit events: oversized events lose their objects; events that are still oversized are dropped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

MAX_EVENT: Final = 100 * 1024
MAX_BATCH: Final = 10 * 1024 * 1024


_OBJECTS = ("requestObject", "responseObject")
_TRUNCATED = "audit.k8s.io/truncated"


def truncated(event: Json) -> Json:
    """Return the event without objects, marked as truncated."""
    return marked_truncated({key: value for key, value in event.items() if key not in _OBJECTS})


def marked_truncated(event: Json) -> Json:
    return event | {"annotations": (event.get("annotations") or {}) | {_TRUNCATED: "true"}}


@dataclass(frozen=True, slots=True)
class Truncation:
    max_event: int = MAX_EVENT
    max_batch: int = MAX_BATCH

    def batches(self, events: list[Json]) -> Iterator[list[Json]]:
        """Yield the events in batches of bounded size."""
        import orjson  # on demand: flag parsing imports this module

        batch: list[Json] = []
        size = 0
        for event in events:
            length = len(orjson.dumps(event))
            if length > self.max_event:
                event = truncated(event)
                length = len(orjson.dumps(event))
            if length > self.max_event:
                continue
            if batch and size + length > self.max_batch:
                yield batch
                batch, size = [], 0
            batch.append(event)
            size += length
        if batch:
            yield batch
