"""Combined proposal of all metrics of an autoscaler: the highest wins.

If some metrics fail, the others may scale up but not down.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import field

from pilothouse.client.events.event import WARNING
from pilothouse.client.events.recorder import EventRecorder
from pilothouse.controllers.podautoscaler.metric_sources import MetricSources, Proposal
from pilothouse.controllers.podautoscaler.pod_metrics import MetricsUnavailable
from pilothouse.controllers.podautoscaler.pod_use import PodUse, Target
from pilothouse.controllers.podautoscaler.replica_calculator import Tolerances
from pilothouse.controllers.podautoscaler.scale_target import ScaleTarget
from pilothouse.kinds.conditions import Condition, set_condition
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, labels_of, namespace_of
from pilothouse.machinery.selectors.labels import Selector, parse
from pilothouse.machinery.status_error import PilothouseError

_ACTIVE = "ScalingActive"


class NoProposal(PilothouseError):
    """No metric could be evaluated. `statuses` holds the available metric statuses."""

    def __init__(self, message: str, statuses: list[Json]) -> None:
        super().__init__(message)
        self.statuses = statuses


@dataclass(frozen=True, slots=True)
class Proposed:
    highest: Proposal
    statuses: list[Json]
    failed: str = ""
    """Error of the metrics that could not be evaluated."""


@dataclass(frozen=True, slots=True)
class _Source:
    field: str
    reason: str
    """Reason of the event and condition on failure."""
    what_failed: Callable[[Json], str]
    propose: Callable[[Json, Target], Awaitable[Proposal]]


@dataclass(slots=True)
class _Round:
    found: list[Proposal] = field(default_factory=list)
    statuses: list[Json] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    first_condition: Condition | None = None


class Proposals:
    def __init__(self, sources: MetricSources, use: PodUse, recorder: EventRecorder) -> None:
        self._recorder = recorder
        self._pods_of = use.pods_of
        self._selectors: dict[str, Selector] = {}
        self._sources = {
            "Object": _Source("object", "FailedGetObjectMetric", _of_object, sources.of_object),
            "Pods": _Source("pods", "FailedGetPodsMetric", lambda source: "pods metric value", sources.of_pods),
            "Resource": _Source(
                "resource",
                "FailedGetResourceMetric",
                lambda source: f"{source['name']} resource metric value",
                sources.of_resource,
            ),
            "ContainerResource": _Source(
                "containerResource",
                "FailedGetContainerResourceMetric",
                lambda source: f"{source['container']} container metric value",
                sources.of_container_resource,
            ),
            "External": _Source("external", "FailedGetExternalMetric", _of_external, sources.of_external),
        }

    def forget(self, key: str) -> None:
        self._selectors.pop(key, None)

    async def of(self, key: str, autoscaler: Json, scale: ScaleTarget, tolerances: Tolerances) -> Proposed:
        """Return the proposal and set the ScalingActive condition. Raises NoProposal."""
        target = Target(
            namespace=namespace_of(autoscaler),
            selector=self._selector(autoscaler, scale),
            wanted=scale.wanted,
            there=scale.there,
            tolerances=tolerances,
        )
        self._check_alone(key, autoscaler, scale, target)
        specs = autoscaler["spec"].get("metrics") or []
        round_ = _Round()
        for spec in specs:
            await self._ask(autoscaler, spec, target, round_)
        metrics = len(specs)
        invalid = len(round_.errors)
        failed = (
            f"invalid metrics ({invalid} invalid out of {metrics}), first error is: {round_.errors[0]}"
            if invalid
            else ""
        )
        highest = max(round_.found, key=lambda proposal: proposal.replicas, default=None)
        if highest is None or (invalid and highest.replicas < scale.wanted):
            if round_.first_condition is not None:
                set_condition(autoscaler, round_.first_condition)
            raise NoProposal(failed, round_.statuses)
        message = f"the HPA was able to successfully calculate a replica count from {highest.metric}"
        set_condition(autoscaler, Condition(_ACTIVE, "True", "ValidMetricFound", message))
        return Proposed(highest, round_.statuses, failed)

    async def _ask(self, autoscaler: Json, spec: Json, target: Target, round_: _Round) -> None:
        source = self._sources[spec["type"]]
        try:
            proposal = await source.propose(spec, target)
        except MetricsUnavailable as error:
            self._recorder.event(autoscaler, WARNING, source.reason, str(error))
            message = f"the HPA was unable to compute the replica count: {error}"
            round_.first_condition = round_.first_condition or Condition(_ACTIVE, "False", source.reason, message)
            round_.errors.append(f"failed to get {source.what_failed(spec[source.field])}: {error}")
            round_.statuses.append({"type": ""})
            return
        round_.found.append(proposal)
        round_.statuses.append({"type": spec["type"], source.field: proposal.status})

    def _selector(self, autoscaler: Json, scale: ScaleTarget) -> Selector:
        if not scale.selector:
            message = "the HPA target's scale is missing a selector"
            raise self._refuse(autoscaler, "SelectorRequired", "InvalidSelector", "selector is required", message)
        try:
            return parse(scale.selector)
        except ValueError as error:
            message = f"couldn't convert selector into a corresponding internal selector object: {error}"
            raise self._refuse(autoscaler, "InvalidSelector", "InvalidSelector", message, message) from None

    def _check_alone(self, key: str, autoscaler: Json, scale: ScaleTarget, target: Target) -> None:
        """Reject ambiguous selectors: autoscalers with overlapping pods would conflict. Raises NoProposal."""
        self._selectors[key] = target.selector
        namespace = f"{target.namespace}/"
        others = {key: selector for key, selector in self._selectors.items() if key.startswith(namespace)}
        if len(others) < 2:
            return
        try:
            pods = self._pods_of(target)
        except MetricsUnavailable:
            return
        same = [key for key, selector in others.items() if any(selector.matches(labels_of(pod)) for pod in pods)]
        if len(same) > 1:
            message = f"pods by selector {scale.selector} are controlled by multiple HPAs: [{' '.join(sorted(same))}]"
            raise self._refuse(autoscaler, "AmbiguousSelector", "AmbiguousSelector", message, message)

    def _refuse(self, autoscaler: Json, event: str, reason: str, short_message: str, message: str) -> NoProposal:
        self._recorder.event(autoscaler, WARNING, event, short_message)
        set_condition(autoscaler, Condition(_ACTIVE, "False", reason, message))
        return NoProposal(short_message, [])


def _of_object(source: Json) -> str:
    name, value = source["metric"]["name"], "object metric value"
    return f"{value}: failed to get {name} object metric" if source["target"].get("averageValue") else value


def _of_external(source: Json) -> str:
    name = source["metric"]["name"]
    description = f"{name} external metric" if source["target"].get("averageValue") else f"external metric {name}"
    return f"{name} external metric value: failed to get {description}"
