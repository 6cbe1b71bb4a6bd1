"""The metrics of endpoints, under upstream's names."""

from __future__ import annotations

from pilothouse.apiserver.metrics import REGISTRY
from pilothouse.apiserver.tallies import CounterTally, HistogramTally

_LABELS = ("group", "version", "resource")

WATCH_EVENTS = CounterTally("apiserver_watch_events", "Events sent to watching clients.", _LABELS, registry=REGISTRY)
WATCH_EVENT_SIZES = HistogramTally(
    "apiserver_watch_events_sizes",
    "Bytes of events sent to watching clients.",
    _LABELS,
    bounds=[1024 * 2**power for power in range(8)],
    registry=REGISTRY,
)
