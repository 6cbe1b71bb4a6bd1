"""The metrics of several processes as metrics of one server: counters are summed.

Gauges such as requests in flight are summed, too. Metrics of a shared subject have the maximum over the processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeAlias

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

Families: TypeAlias = list[tuple[str, str, str, list[tuple[str, dict[str, str], float]]]]
"""(name, help, type, samples) of each family, as plain values that can be sent to another process."""

_SEEN_BY_ALL = (
    "apiserver_resource_objects",
    "apiserver_resource_size_estimate_bytes",
    "apiserver_storage_objects",
    "apiserver_storage_size_bytes",
    "apiserver_watch_cache_resource_version",
    "kubernetes_build_info",
    "kubernetes_feature_enabled",
    "kubernetes_healthcheck",
    "pilothouse_worker_restarts",
    "process_max_fds",
    "process_start_time_seconds",
    "registered_metrics",
    "version_info",
)


class Peers(Protocol):
    """The other processes of a server."""

    async def families(self, name: str) -> list[Families]:
        """Return the registry with this name of every peer that responds."""


def families_of(registry: CollectorRegistry) -> Families:
    return [
        (
            family.name,
            family.documentation,
            family.type,
            [(sample.name, sample.labels, sample.value) for sample in family.samples],
        )
        for family in registry.collect()
    ]


class Sum(Collector):
    """A collector of the families of several processes, in the order of first occurrence."""

    def __init__(self, processes: Iterable[Families]) -> None:
        self._processes = processes

    def collect(self) -> Iterator[Metric]:
        heads: dict[str, tuple[str, str]] = {}
        values: dict[str, dict[tuple[str, tuple[tuple[str, str], ...]], float]] = {}
        for families in self._processes:
            for name, help_text, kind, samples in families:
                heads.setdefault(name, (help_text, kind))
                _add(values.setdefault(name, {}), samples, max if name in _SEEN_BY_ALL else _plus)
        for name, (help_text, kind) in heads.items():
            family = Metric(name, help_text, kind)
            family.samples = [Sample(sample, dict(labels), value) for (sample, labels), value in values[name].items()]
            yield family


def _add(
    into: dict[tuple[str, tuple[tuple[str, str], ...]], float],
    samples: Iterable[tuple[str, dict[str, str], float]],
    join: Callable[[float, float], float],
) -> None:
    for name, labels, value in samples:
        key = (name, tuple(labels.items()))
        into[key] = join(into[key], value) if key in into else value


def _plus(one: float, other: float) -> float:
    return one + other
