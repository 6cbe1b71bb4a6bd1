"""Metrics of flow control state under upstream's names, collected at scrape time."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator

from prometheus_client.metrics_core import GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from pilothouse.apiserver.flowcontrol.controller import FlowController
from pilothouse.apiserver.flowcontrol.levels import PriorityLevel
from pilothouse.apiserver.flowcontrol.queue_set import Ticket
from pilothouse.apiserver.tallies import REGISTRY

_PREFIX = "apiserver_flowcontrol_"
_LEVEL = "priority_level"
_FLOW = (_LEVEL, "flow_schema")

_EXECUTING: dict[str, tuple[str, Callable[[Ticket], int]]] = {
    "current_executing_requests": (
        "[BETA] Number of requests in initial (for a WATCH) or any (for a non-WATCH) execution stage in the "
        "API Priority and Fairness subsystem",
        lambda ticket: 1,
    ),
    "current_executing_seats": (
        "[BETA] Concurrency (number of seats) occupied by the currently executing (initial stage for a WATCH,"
        " any stage otherwise) requests in the API Priority and Fairness subsystem",
        lambda ticket: ticket.seats,
    ),
}
_WAITING: dict[str, tuple[str, Callable[[Ticket], int]]] = {
    "current_inqueue_requests": (
        "[BETA] Number of requests currently pending in queues of the API Priority and Fairness subsystem",
        lambda ticket: 1,
    ),
    "current_inqueue_seats": (
        "[ALPHA] Number of seats currently pending in queues of the API Priority and Fairness subsystem",
        lambda ticket: ticket.seats,
    ),
}
_STATES: dict[str, tuple[str, Callable[[PriorityLevel], float]]] = {
    "current_limit_seats": (
        "[ALPHA] current derived number of execution seats available to each priority level",
        lambda level: level.queues.limit,
    ),
    "nominal_limit_seats": (
        "[BETA] Nominal number of execution seats configured for each priority level",
        lambda level: level.nominal,
    ),
    "lower_limit_seats": (
        "[ALPHA] Configured lower bound on number of execution seats available to each priority level",
        lambda level: level.minimum,
    ),
    "upper_limit_seats": (
        "[ALPHA] Configured upper bound on number of execution seats available to each priority level",
        lambda level: level.maximum,
    ),
    "demand_seats_high_watermark": (
        "[ALPHA] High watermark, over last adjustment period, of demand_seats",
        lambda level: level.stats.high,
    ),
    "demand_seats_average": (
        "[ALPHA] Time-weighted average, over last adjustment period, of demand_seats",
        lambda level: level.stats.average,
    ),
    "demand_seats_stdev": (
        "[ALPHA] Time-weighted standard deviation, over last adjustment period, of demand_seats",
        lambda level: level.stats.deviation,
    ),
    "current_r": (
        "[ALPHA] R(time of last change)",
        lambda level: level.queues.virtual_time,
    ),
    "target_seats": ("[ALPHA] Seat allocation targets", lambda level: round(level.target)),
    "demand_seats_smoothed": ("[ALPHA] Smoothed seat demands", lambda level: level.stats.smoothed),
}
_EVERY_NANOSECOND = "EXPERIMENTAL: [ALPHA] Observations, at the end of every nanosecond, of"
_USES: dict[str, tuple[str, dict[str, str]]] = {
    "demand_seats": (
        "(the number of seats each priority level could use) / (nominal number of seats for that level)",
        {"": "demand"},
    ),
    "priority_level_seat_utilization": (
        "utilization of seats for any stage of execution (but only initial stage for WATCHes)",
        {"executing": "seats"},
    ),
    "priority_level_request_utilization": (
        "number of requests (as a fraction of the relevant limit) waiting or in any stage of execution (but only "
        "initial stage for WATCHes)",
        {"executing": "executing", "waiting": "waiting"},
    ),
}
"""Metric → (help text, phase label → part of the level's use). An empty phase means no phase label."""


class FlowControlCollector(Collector):
    def __init__(self, controller: FlowController) -> None:
        self._controller = controller

    async def run(self) -> None:
        """Export metrics until cancelled; a stopped server leaves no series behind."""
        REGISTRY.register(self)
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            REGISTRY.unregister(self)

    def describe(self) -> Iterator[Metric]:
        return iter(())

    def collect(self) -> Iterator[Metric]:
        for name, (about, value) in _STATES.items():
            family = GaugeMetricFamily(_PREFIX + name, about, labels=[_LEVEL])
            for level in self._controller.levels.values():
                family.add_metric([level.name], value(level))
            yield family
        yield self._in_queue()
        yield from (self._waiting(name, *about) for name, about in _WAITING.items())
        yield from (self._executing(name, *about) for name, about in _EXECUTING.items())
        yield from (self._use(name, *about) for name, about in _USES.items())
        yield self._use_by_kind()
        fraction = GaugeMetricFamily(
            f"{_PREFIX}seat_fair_frac",
            "[ALPHA] Fair fraction of server's concurrency to allocate to each priority level that can use it",
        )
        fraction.add_metric([], self._controller.fair_fraction)
        yield fraction

    def _waiting(self, name: str, about: str, value: Callable[[Ticket], int]) -> Metric:
        counts = Counter(dict.fromkeys(self._controller.flows, 0))
        for level, ticket in self._waiting_tickets():
            counts[level, ticket.schema] += value(ticket)
        return _by_flow(name, about, counts)

    def _waiting_tickets(self) -> Iterator[tuple[str, Ticket]]:
        for level in list(self._controller.levels.values()):
            for queue in list(level.queues.queues.values()):
                for ticket in list(queue.waiting):
                    yield level.name, ticket

    def _executing(self, name: str, about: str, value: Callable[[Ticket], int]) -> Metric:
        """Build a metric by flow schema, for schemas with executing requests."""
        counts: Counter[tuple[str, str]] = Counter()
        for level in list(self._controller.levels.values()):
            for ticket in list(level.queues.executing):
                counts[level.name, ticket.schema] += value(ticket)
        return _by_flow(name, about, counts)

    def _use(self, name: str, about: str, phases: dict[str, str]) -> Metric:
        labels = [_LEVEL] if "" in phases else ["phase", _LEVEL]
        family = HistogramMetricFamily(_PREFIX + name, f"{_EVERY_NANOSECOND} {about}", labels=labels)
        for level in list(self._controller.levels.values()):
            for phase, part in phases.items():
                family.add_metric([*filter(None, [phase]), level.name], *level.queues.use.shown(part))
        return family

    def _use_by_kind(self) -> Metric:
        about = "the number of requests (as a fraction of the relevant limit) waiting or in regular stage of execution"
        name, labels = f"{_PREFIX}read_vs_write_current_requests", ["phase", "request_kind"]
        family = HistogramMetricFamily(name, f"{_EVERY_NANOSECOND} {about}", labels=labels)
        for kind, use in (("readOnly", self._controller.reads), ("mutating", self._controller.writes)):
            family.add_metric(["executing", kind], *use.shown("executing"))
            family.add_metric(["waiting", kind], *use.shown("waiting"))
        return family

    def _in_queue(self) -> Metric:
        counts = dict.fromkeys(("mutating", "readOnly"), 0)
        for _, ticket in self._waiting_tickets():
            counts["readOnly" if ticket.is_read else "mutating"] += 1
        about = "[ALPHA] Maximal number of queued requests in this apiserver per request kind in last second."
        family = GaugeMetricFamily("apiserver_current_inqueue_requests", about, labels=["request_kind"])
        for kind, count in counts.items():
            family.add_metric([kind], count)
        return family


def _by_flow(name: str, about: str, counts: Counter[tuple[str, str]]) -> Metric:
    family = GaugeMetricFamily(_PREFIX + name, about, labels=_FLOW)
    for labels, total in counts.items():
        family.add_metric(labels, total)
    return family
