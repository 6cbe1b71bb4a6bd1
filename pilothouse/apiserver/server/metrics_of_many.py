"""The metrics of several processes as those of one server: what one of them counts is added to what the others count.

Gauges are added, too, such as requests in flight; but what every process sees of the same thing is not: it is the
greatest that one of them has seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeAlias

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

Families: TypeAlias = list[tuple[str, str, str, list[tuple[str, dict[str, str], float]]]]
"""Of each family its name, help, type, and samples; plain values, to be sent to another process."""

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
        """Return what each of those that answer has in its registry of this name."""


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
    """A collector of several processes' families. They come in the order in which they are first met."""

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
