"""Metrics of unavailable APIServices: current state and number of transitions."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from pilothouse.apiserver.tallies import REGISTRY, CounterTally


class _Unavailable(Collector):
    """A gauge. prometheus_client's Gauge would clash with the name of the counter."""

    def __init__(self) -> None:
        self.rows: dict[str, float] = {}
        REGISTRY.register(self)

    def describe(self) -> Iterator[Metric]:
        return iter(())

    def collect(self) -> Iterator[Metric]:
        family = GaugeMetricFamily(
            "aggregator_unavailable_apiservice",
            "[ALPHA] Gauge of APIServices which are marked as unavailable broken down by APIService name.",
            labels=["name"],
        )
        for name, value in self.rows.items():
            family.add_metric([name], value)
        yield family


_UNAVAILABLE = _Unavailable()
_BECAME_UNAVAILABLE = CounterTally(
    "aggregator_unavailable_apiservice_total",
    "[ALPHA] Counter of APIServices which are marked as unavailable broken down by APIService name and reason.",
    ["name", "reason"],
    registry=REGISTRY,
)


def note_availability(name: str, *, available: bool) -> None:
    _UNAVAILABLE.rows[name] = 0.0 if available else 1.0


def count_unavailable(name: str, reason: str) -> None:
    _BECAME_UNAVAILABLE.inc((name, reason))


def forget_availability(name: str) -> None:
    _UNAVAILABLE.rows.pop(name, None)
