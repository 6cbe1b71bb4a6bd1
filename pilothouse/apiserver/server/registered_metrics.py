"""How many families of metrics there are, by how stable they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from prometheus_client.metrics_core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector, CollectorRegistry

_STAGES = ("ALPHA", "BETA", "STABLE")


class RegisteredMetrics(Collector):
    """Goes by the first word of what each family says of itself, as upstream's have it: [STABLE] and so on."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        registry.register(self)

    def describe(self) -> Iterator[Metric]:
        yield self._family()

    def collect(self) -> Iterator[Metric]:
        family = self._family()
        known = {metric.name: metric.documentation for metric in self._described()}
        for stage in _STAGES:
            family.add_metric([stage, ""], sum(about.startswith(f"[{stage}]") for about in known.values()))
        yield family

    def _described(self) -> Iterator[Metric]:
        for collector in dict.fromkeys(self._registry._names_to_collectors.values()):
            describe: Callable[[], Iterable[Metric]] | None = getattr(collector, "describe", None)
            yield from describe() if describe is not None else ()

    def _family(self) -> CounterMetricFamily:
        about = "[BETA] The count of registered metrics broken by stability level and deprecation version."
        return CounterMetricFamily("registered_metrics", about, labels=["stability_level", "deprecated_version"])
