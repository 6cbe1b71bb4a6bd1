"""The five kinds of metrics that an autoscaler can go by, and what each asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache

from pilothouse.client.cache.indexer import NAMESPACE_INDEX
from pilothouse.client.cache.shared_informer import SharedIndexInformer
from pilothouse.client.clock import Clock
from pilothouse.controllers.podautoscaler.config import AutoscalerConfig
from pilothouse.controllers.podautoscaler.pod_groups import group_pods, requests_of
from pilothouse.controllers.podautoscaler.pod_metrics import MetricsClient, MetricsUnavailable, PodMetric
from pilothouse.controllers.podautoscaler.replica_calculator import (
    Tolerances,
    Use,
    average_use,
    replicas_for_pods,
    replicas_for_share,
    replicas_for_total,
    total,
    utilization,
)
from pilothouse.controllers.podautoscaler.selector_text import selector_text
from pilothouse.controllers.workloads.pod_state import is_ready
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, labels_of
from pilothouse.machinery.quantity import Format, milli_quantity, parse_quantity
from pilothouse.machinery.selectors.label_selector import from_label_selector
from pilothouse.machinery.selectors.labels import Selector

_EVERYTHING = Selector()


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The workload that is scaled."""

    namespace: str
    selector: Selector
    wanted: int
    """The replicas that its spec says."""
    there: int
    """And its status."""
    tolerances: Tolerances


@dataclass(frozen=True, slots=True)
class Proposal:
    replicas: int
    metric: str
    """In words."""
    status: Json


class MetricSources:
    def __init__(
        self, metrics: MetricsClient, pods: SharedIndexInformer, config: AutoscalerConfig, clock: Clock
    ) -> None:
        self._metrics = metrics
        self._pods = pods
        self._config = config
        self._clock = clock

    def pods_of(self, target: Target) -> list[Json]:
        """Raises MetricsUnavailable if there are none."""
        pods = self._pods.indexer.by_index(NAMESPACE_INDEX, target.namespace)
        if found := [pod for pod in pods if target.selector.matches(labels_of(pod))]:
            return found
        raise MetricsUnavailable("no pods returned by selector while calculating replica count")

    async def of_resource(self, spec: Json, target: Target) -> Proposal:
        source = spec["resource"]
        replicas, current, metric = await self._of_resource(source, target, "")
        return Proposal(replicas, metric, {"name": source["name"], "current": current})

    async def of_container_resource(self, spec: Json, target: Target) -> Proposal:
        source = spec["containerResource"]
        container = source["container"]
        replicas, current, metric = await self._of_resource(source, target, container)
        metric = metric.replace(" resource utilization", " container resource utilization")
        return Proposal(replicas, metric, {"name": source["name"], "container": container, "current": current})

    async def _of_resource(self, source: Json, target: Target, container: str) -> tuple[int, Json, str]:
        """Raises MetricsUnavailable."""
        name, aim = source["name"], source["target"]
        share, amount = aim.get("averageUtilization"), aim.get("averageValue")
        if amount is None and share is None:
            what = "neither an average utilization target nor an average value (usage) target was set"
            raise MetricsUnavailable(f"invalid resource metric source: {what}")
        try:
            metrics = await self._resource_metrics(name, target, container)
            if amount is not None:
                replicas, use = self._by_average(metrics, _milli(amount), target, name)
                return replicas, {"averageValue": _quantity(name, use.average)}, f"{name} resource"
            replicas, use = self._by_share(metrics, share, target, name, container)
        except MetricsUnavailable as error:
            what = "utilization" if amount is None else "usage"
            raise MetricsUnavailable(f"failed to get {name} {what}: {error}") from None
        current = {"averageUtilization": use.percent, "averageValue": _quantity(name, use.average)}
        return replicas, current, f"{name} resource utilization (percentage of request)"

    async def _resource_metrics(self, name: str, target: Target, container: str) -> dict[str, PodMetric]:
        try:
            return await self._metrics.of_resource(name, target.namespace, target.selector, container)
        except MetricsUnavailable as error:
            raise MetricsUnavailable(f"unable to get metrics for resource {name}: {error}") from None

    def _by_share(
        self, metrics: Mapping[str, PodMetric], share: int, target: Target, resource: str, container: str
    ) -> tuple[int, Use]:
        pods = self.pods_of(target)
        requests = cache(lambda: requests_of(pods, resource, container))  # asked for when there is use to compare
        return self._replicas(
            metrics,
            pods,
            target,
            resource,
            measure=lambda values: utilization(values, requests(), share),
            should_use=lambda name: requests()[name] * max(100, share) // 100,
        )

    def _by_average(
        self, metrics: Mapping[str, PodMetric], amount: int, target: Target, resource: str = ""
    ) -> tuple[int, Use]:
        return self._replicas(
            metrics,
            self.pods_of(target),
            target,
            resource,
            measure=lambda values: average_use(values, amount),
            should_use=lambda name: amount,
        )

    def _replicas(
        self,
        metrics: Mapping[str, PodMetric],
        pods: list[Json],
        target: Target,
        resource: str,
        *,
        measure: Callable[[Mapping[str, int]], Use],
        should_use: Callable[[str], int],
    ) -> tuple[int, Use]:
        now = datetime.fromtimestamp(self._clock.wall(), UTC)
        groups = group_pods(pods, metrics, resource, self._config, now)
        values = {name: metric.value for name, metric in metrics.items()}
        return replicas_for_pods(
            target.wanted, values, groups, measure=measure, should_use=should_use, tolerances=target.tolerances
        )

    async def of_pods(self, spec: Json, target: Target) -> Proposal:
        source = spec["pods"]
        name = source["metric"]["name"]
        try:
            metrics = await self._metrics.of_pods(name, target.namespace, target.selector, _selector(source))
        except MetricsUnavailable as error:
            raise MetricsUnavailable(f"unable to get metric {name}: {error}") from None
        replicas, use = self._by_average(metrics, _milli(source["target"]["averageValue"]), target)
        current = {"averageValue": str(milli_quantity(use.average))}
        return Proposal(replicas, f"pods metric {name}", {"metric": source["metric"], "current": current})

    async def of_object(self, spec: Json, target: Target) -> Proposal:
        source = spec["object"]
        described, metric, aim = source["describedObject"], source["metric"], source["target"]
        if not (aim["type"] == "Value" and aim.get("value")) and not aim.get("averageValue"):
            what = "neither a value target nor an average value target was set"
            raise MetricsUnavailable(f"invalid object metric source: {what}")
        try:
            used = await self._metrics.of_object(metric["name"], target.namespace, described, _selector(source))
        except MetricsUnavailable as error:
            # In the order in which upstream prints it, which is not the one that it meant.
            where = f"{described['kind']} on {target.namespace} {described['name']}"
            raise MetricsUnavailable(f"unable to get metric {metric['name']}: {where}/{error}") from None
        of_all = f"{described['kind']} metric {metric['name']}"
        status = {"describedObject": described, "metric": metric}
        return self._of_total(used, metric, aim, target, status, of_all)

    async def of_external(self, spec: Json, target: Target) -> Proposal:
        source = spec["external"]
        metric, aim = source["metric"], source["target"]
        if not aim.get("value") and not aim.get("averageValue"):
            what = "neither a value target nor an average value target was set"
            raise MetricsUnavailable(f"invalid external metric source: {what}")
        try:
            used = total(await self._metrics.external(metric["name"], target.namespace, _selector(source)))
        except MetricsUnavailable as error:
            text = selector_text(metric.get("selector"))
            where = f"{target.namespace}/{metric['name']}/{text}"
            raise MetricsUnavailable(f"unable to get external metric {where}: {error}") from None
        return self._of_total(used, metric, aim, target, {"metric": metric}, _external(metric))

    def _of_total(self, used: int, metric: Json, aim: Json, target: Target, status: Json, of_all: str) -> Proposal:
        if aim.get("averageValue") is not None:
            share = _milli(aim["averageValue"])
            replicas, each = replicas_for_share(target.there, used, share, target.tolerances)
            return Proposal(replicas, _external(metric), {**status, "current": {"averageValue": _shown(each)}})
        amount = _milli(aim["value"])
        replicas = replicas_for_total(target.wanted, used, amount, lambda: self._ready(target), target.tolerances)
        return Proposal(replicas, of_all, {**status, "current": {"value": _shown(used)}})

    def _ready(self, target: Target) -> int:
        try:
            pods = self.pods_of(target)
        except MetricsUnavailable as error:
            raise MetricsUnavailable(f"unable to calculate ready pods: {error}") from None
        return sum((pod.get("status") or {}).get("phase") == "Running" and is_ready(pod) for pod in pods)


def _external(metric: Json) -> str:
    return f"external metric {metric['name']}({selector_text(metric.get('selector'))})"


def _selector(source: Json) -> Selector:
    selector = source["metric"].get("selector")
    return _EVERYTHING if selector is None else from_label_selector(selector)


def _milli(amount: object) -> int:
    return parse_quantity(str(amount)).milli_value()


def _shown(value: int) -> str:
    return str(milli_quantity(value))


def _quantity(resource: str, value: int) -> str:
    return str(milli_quantity(value, Format.BINARY_SI if resource == "memory" else Format.DECIMAL_SI))
