"""Per-request metrics of flow control, under upstream's names."""

from __future__ import annotations

from pilothouse.apiserver.tallies import REGISTRY, CounterTally, HistogramTally

_PREFIX = "apiserver_flowcontrol_"
_FLOW = ("priority_level", "flow_schema")
_SECONDS = (0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30)

REJECTED = CounterTally(
    f"{_PREFIX}rejected_requests",
    "[BETA] Number of requests rejected by API Priority and Fairness subsystem",
    (*_FLOW, "reason"),
    registry=REGISTRY,
)
DISPATCHED = CounterTally(
    f"{_PREFIX}dispatched_requests",
    "[BETA] Number of requests executed by API Priority and Fairness subsystem",
    _FLOW,
    registry=REGISTRY,
)
WAIT = HistogramTally(
    f"{_PREFIX}request_wait_duration_seconds",
    "[BETA] Length of time a request spent waiting in its queue",
    (*_FLOW, "execute"),
    bounds=_SECONDS,
    registry=REGISTRY,
)
EXECUTION = HistogramTally(
    f"{_PREFIX}request_execution_seconds",
    "[ALPHA] Duration of initial stage (for a WATCH) or any (for a non-WATCH) stage of request execution "
    "in the API Priority and Fairness subsystem",
    (*_FLOW, "type"),
    bounds=_SECONDS,
    registry=REGISTRY,
)
ESTIMATED_SEATS = HistogramTally(
    f"{_PREFIX}work_estimated_seats",
    "[ALPHA] Number of estimated seats (maximum of initial and final seats) associated with requests in API "
    "Priority and Fairness",
    _FLOW,
    bounds=(1, 2, 4, 8, 16, 32, 64, 100),
    registry=REGISTRY,
)
WATCH_COUNT = HistogramTally(
    f"{_PREFIX}watch_count_samples",
    "[ALPHA] count of watchers for mutating requests in API Priority and Fairness",
    _FLOW,
    bounds=(0, 1, 10, 100, 1000, 10000),
    registry=REGISTRY,
)


class FlowSeries:
    """Metric series of a flow schema, each looked up once."""

    __slots__ = ("estimated_seats", "execution", "labels", "watch_execution", "watchers")

    def __init__(self, level: str, schema: str) -> None:
        self.labels = (level, schema)
        self.estimated_seats = ESTIMATED_SEATS.row(self.labels)
        self.watchers = WATCH_COUNT.row(self.labels)
        self.execution = EXECUTION.row((*self.labels, "regular"))
        self.watch_execution = EXECUTION.row((*self.labels, "watch"))
