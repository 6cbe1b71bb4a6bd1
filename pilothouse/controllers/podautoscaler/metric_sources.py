"""The five metric source types of an autoscaler, and the replicas proposed by each."""

from __future__ import annotations

from pilothouse.controllers.podautoscaler import replica_calculator
from pilothouse.controllers.podautoscaler.pod_metrics import MetricsClient, MetricsUnavailable, PodMetric, milli_value
from pilothouse.controllers.podautoscaler.pod_use import PodUse, Target
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json
from pilothouse.machinery.quantity import Format, milli_quantity
from pilothouse.machinery.selectors.labels import Selector, from_label_selector

_EVERYTHING = Selector()


@dataclass(frozen=True, slots=True)
class Proposal:
    replicas: int
    metric: str
    """Description for messages."""
    status: Json


class MetricSources:
    def __init__(self, metrics: MetricsClient, use: PodUse) -> None:
        self._metrics = metrics
        self._use = use

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
        """Return (replicas, status, description) of a resource metric. Raises MetricsUnavailable."""
        name, aim = source["name"], source["target"]
        share, amount = aim.get("averageUtilization"), aim.get("averageValue")
        if amount is None and share is None:
            measure = "neither an average utilization target nor an average value (usage) target was set"
            raise MetricsUnavailable(f"invalid resource metric source: {measure}")
        try:
            metrics = await self._resource_metrics(name, target, container)
            if amount is not None:
                replicas, use = self._use.by_average(metrics, milli_value(amount), target, name)
                return replicas, {"averageValue": _quantity(name, use.average)}, f"{name} resource"
            replicas, use = self._use.by_share(metrics, share, target, name, container)
        except MetricsUnavailable as error:
            measure = "utilization" if amount is None else "usage"
            raise MetricsUnavailable(f"failed to get {name} {measure}: {error}") from None
        current = {"averageUtilization": use.percent, "averageValue": _quantity(name, use.average)}
        return replicas, current, f"{name} resource utilization (percentage of request)"

    async def _resource_metrics(self, name: str, target: Target, container: str) -> dict[str, PodMetric]:
        try:
            return await self._metrics.of_resource(name, target.namespace, target.selector, container)
        except MetricsUnavailable as error:
            raise MetricsUnavailable(f"unable to get metrics for resource {name}: {error}") from None

    async def of_pods(self, spec: Json, target: Target) -> Proposal:
        source = spec["pods"]
        name = source["metric"]["name"]
        try:
            metrics = await self._metrics.of_pods(name, target.namespace, target.selector, _selector(source))
        except MetricsUnavailable as error:
            raise MetricsUnavailable(f"unable to get metric {name}: {error}") from None
        replicas, use = self._use.by_average(metrics, milli_value(source["target"]["averageValue"]), target)
        current = {"averageValue": str(milli_quantity(use.average))}
        return Proposal(replicas, f"pods metric {name}", {"metric": source["metric"], "current": current})

    async def of_object(self, spec: Json, target: Target) -> Proposal:
        source = spec["object"]
        described, metric, aim = source["describedObject"], source["metric"], source["target"]
        if not (aim["type"] == "Value" and aim.get("value")) and not aim.get("averageValue"):
            problem = "neither a value target nor an average value target was set"
            raise MetricsUnavailable(f"invalid object metric source: {problem}")
        try:
            used = await self._metrics.of_object(metric["name"], target.namespace, described, _selector(source))
        except MetricsUnavailable as error:
            # Upstream prints these in swapped order; kept for identical messages.
            where = f"{described['kind']} on {target.namespace} {described['name']}"
            raise MetricsUnavailable(f"unable to get metric {metric['name']}: {where}/{error}") from None
        of_all = f"{described['kind']} metric {metric['name']}"
        status = {"describedObject": described, "metric": metric}
        return self._of_total(used, metric, aim, target, status, of_all)

    async def of_external(self, spec: Json, target: Target) -> Proposal:
        source = spec["external"]
        metric, aim = source["metric"], source["target"]
        if not aim.get("value") and not aim.get("averageValue"):
            problem = "neither a value target nor an average value target was set"
            raise MetricsUnavailable(f"invalid external metric source: {problem}")
        try:
            used = replica_calculator.total(
                await self._metrics.external(metric["name"], target.namespace, _selector(source))
            )
        except MetricsUnavailable as error:
            text = selector_text(metric.get("selector"))
            where = f"{target.namespace}/{metric['name']}/{text}"
            raise MetricsUnavailable(f"unable to get external metric {where}: {error}") from None
        return self._of_total(used, metric, aim, target, {"metric": metric}, _external(metric))

    def _of_total(self, used: int, metric: Json, aim: Json, target: Target, status: Json, of_all: str) -> Proposal:
        if aim.get("averageValue") is not None:
            share = milli_value(aim["averageValue"])
            replicas, usage_per_pod = replica_calculator.replicas_for_share(
                target.there, used, share, target.tolerances
            )
            return Proposal(replicas, _external(metric), {**status, "current": {"averageValue": _shown(usage_per_pod)}})
        amount = milli_value(aim["value"])
        replicas = replica_calculator.replicas_for_total(
            target.wanted, used, amount, lambda: self._use.ready(target), target.tolerances
        )
        return Proposal(replicas, of_all, {**status, "current": {"value": _shown(used)}})


def _external(metric: Json) -> str:
    return f"external metric {metric['name']}({selector_text(metric.get('selector'))})"


def _selector(source: Json) -> Selector:
    selector = source["metric"].get("selector")
    return _EVERYTHING if selector is None else from_label_selector(selector)


def _shown(value: int) -> str:
    return str(milli_quantity(value))


def _quantity(resource: str, value: int) -> str:
    return str(milli_quantity(value, Format.BINARY_SI if resource == "memory" else Format.DECIMAL_SI))


def selector_text(selector: Json | None) -> str:
    """Return `&LabelSelector{…}`, or `nil` for None."""
    if selector is None:
        return "nil"
    labels = "".join(f"{key}: {value}," for key, value in sorted((selector.get("matchLabels") or {}).items()))
    expressions = "".join(map(_requirement, selector.get("matchExpressions") or ()))
    requirements = f"[]LabelSelectorRequirement{{{expressions}}}"
    return f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:{requirements},}}"


def _requirement(expression: Json) -> str:
    values = " ".join(expression.get("values") or ())
    key, operator = expression["key"], expression["operator"]
    return f"LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{values}],}},"
