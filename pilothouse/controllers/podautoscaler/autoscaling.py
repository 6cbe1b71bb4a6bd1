"""One sync of an autoscaler: metrics, limits, scaling and status."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import field

from pilothouse.client.clock import Clock, utc_now
from pilothouse.client.events.event import NORMAL, WARNING
from pilothouse.client.events.recorder import EventRecorder
from pilothouse.controllers.config import AutoscalerConfig
from pilothouse.controllers.podautoscaler.limits import History, Wish, limit
from pilothouse.controllers.podautoscaler.proposals import NoProposal, Proposals
from pilothouse.controllers.podautoscaler.replica_calculator import Tolerances
from pilothouse.controllers.podautoscaler.scale_target import ScaleTarget, ScaleTargets, ScaleUnavailable
from pilothouse.kinds.conditions import Condition, is_true, remove_condition, set_condition
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, namespace_of
from pilothouse.machinery.quantity import parse_quantity
from pilothouse.machinery.status_error import PilothouseError
from pilothouse.machinery.times import format_time

_ABLE, _SCALED_TO_ZERO = "AbleToScale", "ScaledToZero"
_BELOW = "Current number of replicas below Spec.MinReplicas"


class AutoscalingFailed(PilothouseError):
    """Scaling failed for some or all metrics. `status` is the autoscaler's resulting status."""

    def __init__(self, message: str, status: Json) -> None:
        super().__init__(message)
        self.status = status


@dataclass(slots=True)
class _Look:
    """State of one sync: a copy of the autoscaler with mutable conditions, and the target."""

    key: str
    autoscaler: Json
    target: ScaleTarget
    current: int
    desired: int
    metrics: list[Json] = field(default_factory=list)
    reason: str = ""
    failed: str = ""
    """Error of the metrics that could not be evaluated."""

    @property
    def least(self) -> int:
        least = self.autoscaler["spec"].get("minReplicas")
        return 1 if least is None else int(least)

    @property
    def has_metrics_of_others(self) -> bool:
        """Return whether a metric works without pods."""
        return any(metric["type"] in ("Object", "External") for metric in self.autoscaler["spec"].get("metrics") or ())


class Autoscaling:
    def __init__(
        self,
        proposals: Proposals,
        targets: ScaleTargets,
        recorder: EventRecorder,
        config: AutoscalerConfig,
        clock: Clock,
    ) -> None:
        self._targets = targets
        self._recorder = recorder
        self._config = config
        self._clock = clock
        self._proposals = proposals
        self._histories: dict[str, History] = {}

    def forget(self, key: str) -> None:
        self._histories.pop(key, None)
        self._proposals.forget(key)

    async def scale(self, key: str, cached: Json) -> Json:
        """Scale the target if needed; return the autoscaler's status. Raises AutoscalingFailed."""
        autoscaler = {**cached, "status": deepcopy(cached.get("status") or {})}
        try:
            target = await self._targets.of(autoscaler)
        except ScaleUnavailable as error:
            self._recorder.event(autoscaler, WARNING, "FailedGetScale", str(error))
            message = f"the HPA controller was unable to get the target's current scale: {error}"
            set_condition(autoscaler, Condition(_ABLE, "False", "FailedGetScale", message))
            message = f"failed to query scale subresource for {_reference(autoscaler)}: {error}"
            raise AutoscalingFailed(message, autoscaler["status"]) from None
        message = "the HPA controller was able to get the target's current scale"
        set_condition(autoscaler, Condition(_ABLE, "True", "SucceededGetScale", message))
        self._history(key).begin(target.wanted, self._clock.now())
        look = _Look(key, autoscaler, target, target.wanted, target.wanted)
        await self._decide(look)
        rescaled = look.desired != look.current
        if rescaled:
            await self._rescale(look)
        status = _status(look, look.desired)
        if rescaled:
            status["lastScaleTime"] = format_time(utc_now(self._clock))
        if look.failed:
            raise AutoscalingFailed(look.failed, status)
        return status

    def _history(self, key: str) -> History:
        return self._histories.setdefault(key, History())

    async def _decide(self, look: _Look) -> None:
        most = look.autoscaler["spec"]["maxReplicas"]
        if look.current == 0 and not self._may_leave_zero(look):
            message = "scaling is disabled since the replica count of the target is zero"
            set_condition(look.autoscaler, Condition("ScalingActive", "False", "ScalingDisabled", message))
            if not self._config.scale_to_zero:
                remove_condition(look.autoscaler, _SCALED_TO_ZERO)
        elif look.current == 0:
            await self._decide_by_metrics(look, most)
            if look.desired < look.least:
                look.desired, look.reason = look.least, look.reason or _BELOW
        elif look.current > most:
            look.desired, look.reason = most, "Current number of replicas above Spec.MaxReplicas"
        elif look.current < look.least:
            look.desired, look.reason = look.least, _BELOW
        else:
            await self._decide_by_metrics(look, most)

    def _may_leave_zero(self, look: _Look) -> bool:
        """Return whether this autoscaler scaled the target to zero and can detect new work."""
        ours = self._config.scale_to_zero and is_true(look.autoscaler, _SCALED_TO_ZERO)
        return ours and (look.least != 0 or look.has_metrics_of_others)

    async def _decide_by_metrics(self, look: _Look, most: int) -> None:
        try:
            behavior = (look.autoscaler["spec"].get("behavior") or {}) if self._config.configurable_tolerance else {}
            given = [(behavior.get(way) or {}).get("tolerance") for way in ("scaleDown", "scaleUp")]
            down, up = (
                self._config.tolerance if tolerance is None else float(parse_quantity(str(tolerance)))
                for tolerance in given
            )
            proposed = await self._proposals.of(look.key, look.autoscaler, look.target, Tolerances(down, up))
        except NoProposal as error:
            look.metrics = error.statuses
            self._recorder.event(look.autoscaler, WARNING, "FailedComputeMetricsReplicas", str(error))
            message = "failed to compute desired number of replicas based on listed metrics for"
            status = _status(look, look.autoscaler["status"].get("desiredReplicas") or 0)
            raise AutoscalingFailed(f"{message} {_reference(look.autoscaler)}: {error}", status) from None
        look.metrics, look.failed = proposed.statuses, proposed.failed
        proposal = proposed.highest
        desired = max(0, proposal.replicas)
        if desired > look.current:
            look.reason = f"{proposal.metric} above target"
        elif desired < look.current:
            look.reason = "All metrics below target"
        limited = limit(
            Wish(current=look.current, desired=desired, least=look.least, most=most),
            look.autoscaler["spec"].get("behavior"),
            self._history(look.key),
            self._config.downscale_stabilization,
            self._clock.now(),
        )
        for condition in limited.conditions:
            set_condition(look.autoscaler, condition)
        look.desired = limited.replicas

    async def _rescale(self, look: _Look) -> None:
        autoscaler, desired = look.autoscaler, look.desired
        try:
            await look.target.scale(desired)
        except ScaleUnavailable as error:
            message = f"New size: {desired}; reason: {look.reason}; error: {error}"
            self._recorder.event(autoscaler, WARNING, "FailedRescale", message)
            message = f"the HPA controller was unable to update the target scale: {error}"
            set_condition(autoscaler, Condition(_ABLE, "False", "FailedUpdateScale", message))
            status = _status(look, autoscaler["status"].get("desiredReplicas") or 0)
            raise AutoscalingFailed(f"failed to rescale {_reference(autoscaler)}: {error}", status) from None
        message = f"the HPA controller was able to update the target scale to {desired}"
        set_condition(autoscaler, Condition(_ABLE, "True", "SucceededRescale", message))
        self._recorder.event(autoscaler, NORMAL, "SuccessfulRescale", f"New size: {desired}; reason: {look.reason}")
        if (behavior := autoscaler["spec"].get("behavior")) is not None:
            self._history(look.key).changed(look.current, desired, behavior, self._clock.now())
        if not self._config.scale_to_zero:
            remove_condition(look.autoscaler, _SCALED_TO_ZERO)
        else:
            is_zero = look.desired == 0 < look.current and look.least == 0 and look.has_metrics_of_others
            outcome = ("True", "ScaledToZero", "scaled") if is_zero else ("False", "NotScaledToZero", "did not scale")
            message = f"the HPA controller {outcome[2]} the workload to zero"
            set_condition(look.autoscaler, Condition(_SCALED_TO_ZERO, outcome[0], outcome[1], message))


def _status(look: _Look, desired: int) -> Json:
    """Return the complete status; conditions and lastScaleTime are kept."""
    before = look.autoscaler["status"]
    numbers = {"currentReplicas": look.current} if look.current else {}
    status: Json = {**numbers, "desiredReplicas": desired, "conditions": before.get("conditions") or []}
    kept = {name: before[name] for name in ("lastScaleTime",) if before.get(name)}
    return status | kept | ({"currentMetrics": look.metrics} if look.metrics else {})


def _reference(autoscaler: Json) -> str:
    reference = autoscaler["spec"]["scaleTargetRef"]
    return f"{reference['kind']}/{namespace_of(autoscaler)}/{reference['name']}"
