"""Replicas proposed by the pods' metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from pilothouse.client.cache.indexer import NAMESPACE_INDEX
from pilothouse.client.cache.shared_informer import SharedIndexInformer
from pilothouse.client.clock import Clock, utc_now
from pilothouse.controllers.config import AutoscalerConfig
from pilothouse.controllers.podautoscaler import replica_calculator
from pilothouse.controllers.podautoscaler.pod_metrics import MetricsUnavailable, PodMetric
from pilothouse.kinds.pods import is_ready
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, labels_of, part
from pilothouse.machinery.selectors.labels import Selector


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The scaled workload."""

    namespace: str
    selector: Selector
    wanted: int
    """spec.replicas."""
    there: int
    """status.replicas."""
    tolerances: replica_calculator.Tolerances


class PodUse:
    """Proposals from pod metrics. Every method raises MetricsUnavailable."""

    def __init__(self, pods: SharedIndexInformer, config: AutoscalerConfig, clock: Clock) -> None:
        self._pods = pods
        self._config = config
        self._clock = clock

    def pods_of(self, target: Target) -> list[Json]:
        """Return the pods of the workload. Raises MetricsUnavailable if there are none."""
        pods = self._pods.indexer.by_index(NAMESPACE_INDEX, target.namespace)
        if selected := [pod for pod in pods if target.selector.matches(labels_of(pod))]:
            return selected
        raise MetricsUnavailable("no pods returned by selector while calculating replica count")

    def by_share(
        self, metrics: Mapping[str, PodMetric], share: int, target: Target, resource: str, container: str
    ) -> tuple[int, replica_calculator.Use]:
        pods = self.pods_of(target)
        requests = cache(
            lambda: replica_calculator.requests_of(pods, resource, container)
        )  # evaluated lazily, when needed
        return self._replicas(
            metrics,
            pods,
            target,
            resource,
            measure=lambda values: replica_calculator.utilization(values, requests(), share),
            should_use=lambda name: requests()[name] * max(100, share) // 100,
        )

    def by_average(
        self, metrics: Mapping[str, PodMetric], amount: int, target: Target, resource: str = ""
    ) -> tuple[int, replica_calculator.Use]:
        return self._replicas(
            metrics,
            self.pods_of(target),
            target,
            resource,
            measure=lambda values: replica_calculator.average_use(values, amount),
            should_use=lambda name: amount,
        )

    def _replicas(
        self,
        metrics: Mapping[str, PodMetric],
        pods: list[Json],
        target: Target,
        resource: str,
        *,
        measure: Callable[[Mapping[str, int]], replica_calculator.Use],
        should_use: Callable[[str], int],
    ) -> tuple[int, replica_calculator.Use]:
        now = utc_now(self._clock)
        groups = replica_calculator.group_pods(pods, metrics, resource, self._config, now)
        values = {name: metric.value for name, metric in metrics.items()}
        return replica_calculator.replicas_for_pods(
            target.wanted, values, groups, measure=measure, should_use=should_use, tolerances=target.tolerances
        )

    def ready(self, target: Target) -> int:
        try:
            pods = self.pods_of(target)
        except MetricsUnavailable as error:
            raise MetricsUnavailable(f"unable to calculate ready pods: {error}") from None
        return sum(part(pod, "status").get("phase") == "Running" and is_ready(pod) for pod in pods)
