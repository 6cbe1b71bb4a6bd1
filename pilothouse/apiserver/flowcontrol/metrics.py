"""The metrics of flow control, under upstream's names. Those that are states are read off when they are scraped."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from pilothouse.apiserver.flowcontrol.controller import FlowController
from pilothouse.apiserver.flowcontrol.levels import PriorityLevel
from pilothouse.apiserver.metrics import REGISTRY
from pilothouse.apiserver.tallies import CounterTally, HistogramTally

_PREFIX = "apiserver_flowcontrol_"
_LEVEL = "priority_level"
_FLOW = (_LEVEL, "flow_schema")
_SECONDS = (0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30)

REJECTED = CounterTally(
    f"{_PREFIX}rejected_requests", "Requests turned away by flow control.", (*_FLOW, "reason"), registry=REGISTRY
)
DISPATCHED = CounterTally(f"{_PREFIX}dispatched_requests", "Requests let through.", _FLOW, registry=REGISTRY)
WAIT = HistogramTally(
    f"{_PREFIX}request_wait_duration_seconds",
    "Seconds that requests waited for their turn.",
    (*_FLOW, "execute"),
    bounds=_SECONDS,
    registry=REGISTRY,
)
EXECUTION = HistogramTally(
    f"{_PREFIX}request_execution_seconds",
    "Seconds for which requests had their seats.",
    _FLOW,
    bounds=_SECONDS,
    registry=REGISTRY,
)

_STATES: dict[str, tuple[str, Callable[[PriorityLevel], float]]] = {
    "current_executing_requests": ("Requests that run.", lambda level: len(level.queues.executing)),
    "current_executing_seats": ("Seats that are taken.", lambda level: level.queues.seats_in_use),
    "current_inqueue_requests": ("Requests that wait.", lambda level: level.queues.waiting),
    "current_inqueue_seats": ("Seats that are waited for.", lambda level: level.queues.seats_waiting),
    "current_limit_seats": ("Seats of the level, with those it borrowed.", lambda level: level.queues.limit),
    "nominal_limit_seats": ("Seats of the level's own.", lambda level: level.nominal),
    "lower_limit_seats": ("Seats that the level never lends.", lambda level: level.minimum),
    "upper_limit_seats": ("Seats that the level may have at most.", lambda level: level.maximum),
    "demand_seats_high_watermark": ("Seats that were wanted at most.", lambda level: level.stats.high),
    "demand_seats_smoothed": ("Seats that were wanted lately.", lambda level: level.stats.smoothed),
}


class FlowControlCollector(Collector):
    def __init__(self, controller: FlowController) -> None:
        self._controller = controller

    def describe(self) -> Iterator[Metric]:
        return iter(())

    def collect(self) -> Iterator[Metric]:
        for name, (about, value) in _STATES.items():
            family = GaugeMetricFamily(_PREFIX + name, about, labels=[_LEVEL])
            for level in self._controller.levels.values():
                family.add_metric([level.name], value(level))
            yield family
        fraction = GaugeMetricFamily(f"{_PREFIX}seat_fair_frac", "The part of its target that each level gets.")
        fraction.add_metric([], self._controller.fair_fraction)
        yield fraction
