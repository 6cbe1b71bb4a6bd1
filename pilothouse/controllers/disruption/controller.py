"""disruption-controller: maintains the status of PodDisruptionBudgets, which gates evictions."""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime, timedelta

from pilothouse.client.cache.handlers import ResourceEventHandlerFuncs
from pilothouse.client.cache.indexer import NAMESPACE_INDEX
from pilothouse.client.cache.keys import meta_namespace_key
from pilothouse.client.clock import utc_now
from pilothouse.client.controller import Controller, Requeue, enqueue_keys
from pilothouse.client.events.event import NORMAL, WARNING, EventSource
from pilothouse.client.events.recorder import EventRecorder
from pilothouse.controllers.context import ControllerContext, with_last_state
from pilothouse.controllers.disruption.scales import Scales, ScaleUnknown
from pilothouse.controllers.disruption.status import (
    Wanted,
    count_healthy,
    disrupted,
    failed_status,
    new_status,
    scaled,
)
from pilothouse.controllers.resources import POD_DISRUPTION_BUDGETS, PODS
from pilothouse.kinds.conditions import find_condition, with_condition
from pilothouse.kinds.deletion import is_deleting
from pilothouse.machinery.errors import Conflict, NotFound
from pilothouse.machinery.objects import Json, labels_of, metadata, name_of, namespace_of
from pilothouse.machinery.selectors.labels import format_label_selector, from_label_selector
from pilothouse.machinery.status_error import StatusError
from pilothouse.machinery.times import format_time, parse_time

logger = logging.getLogger(__name__)
STALE_AFTER = timedelta(minutes=2)
_NAME = "stale_pod_disruption"
_TARGET = "DisruptionTarget"


async def run(context: ControllerContext) -> None:
    await _DisruptionController(context).run()


class _DisruptionController:
    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._pods, self._budgets = context.informer(PODS), context.informer(POD_DISRUPTION_BUDGETS)
        self._queue = context.queue("disruption", str)
        self._stale_pods = StalePodDisruption(context)
        self._scales = Scales(context.client)
        self._recorder = EventRecorder(context.client, EventSource("controllermanager"), clock=context.clock)

    async def run(self) -> None:
        self._budgets.add_event_handler(enqueue_keys(self._queue))
        self._pods.add_event_handler(
            ResourceEventHandlerFuncs(
                add=self._pod_changed, update=self._pod_updated, delete=with_last_state(self._enqueue_budgets)
            )
        )
        caches, clock = (self._pods, self._budgets), self._context.clock
        budgets = Controller("disruption", self._sync, caches=caches, queue=self._queue, clock=clock)
        async with asyncio.TaskGroup() as tasks:
            for running in (budgets.run(), self._stale_pods.run(), self._recorder.run()):
                tasks.create_task(running)

    def _pod_changed(self, pod: Json) -> None:
        self._enqueue_budgets(pod)
        self._stale_pods.watch(pod)

    def _pod_updated(self, old: Json, new: Json) -> None:
        if labels_of(old) != labels_of(new):
            self._enqueue_budgets(old)
        self._pod_changed(new)

    def _enqueue_budgets(self, pod: Json) -> None:
        budgets = [
            budget
            for budget in self._budgets.indexer.by_index(NAMESPACE_INDEX, namespace_of(pod))
            if from_label_selector(budget["spec"].get("selector")).matches(labels_of(pod))
        ]
        if len(budgets) > 1:
            message = f'Pod "{namespace_of(pod)}"/"{name_of(pod)}" matches multiple PodDisruptionBudgets.'
            chosen = f'  Chose "{name_of(budgets[0])}" arbitrarily.'
            self._recorder.event(pod, WARNING, "MultiplePodDisruptionBudgets", message + chosen)
        for budget in budgets:
            self._queue.add(meta_namespace_key(budget))

    async def _sync(self, key: str) -> Requeue | None:
        budget = self._budgets.indexer.get_by_key(key)
        if budget is None:
            return None
        try:
            selector = from_label_selector(budget["spec"].get("selector"))
            in_namespace = self._pods.indexer.by_index(NAMESPACE_INDEX, namespace_of(budget))
            pods = [pod for pod in in_namespace if selector.matches(labels_of(pod))]
            if not pods:
                self._recorder.event(budget, NORMAL, "NoPods", "No matching pods found")
            wanted, now = await self._wanted(budget, pods), utc_now(self._context.clock)
            evicted = disrupted(pods, budget, now)
            where = f"{namespace_of(budget)}/{name_of(budget)}"
            for pod in evicted.overdue:
                message = f"Pod was expected by PDB {where} to be deleted but it wasn't"
                self._recorder.event(pod, WARNING, "NotDeleted", message)
            healthy = count_healthy(pods, evicted)
            await self._write(budget, new_status(budget, wanted, healthy=healthy, evicted=evicted, now=now))
        except Conflict:
            raise
        except (StatusError, ScaleUnknown) as error:
            logger.error("Failed to sync PDB %s: %s", key, error)
            await self._write(budget, failed_status(budget, str(error), utc_now(self._context.clock)))
            return None
        return None if evicted.recheck is None else Requeue(evicted.recheck.total_seconds())

    async def _write(self, budget: Json, status: Json) -> None:
        if status == budget.get("status"):
            return
        budgets = self._context.client.for_resource(POD_DISRUPTION_BUDGETS, namespace=namespace_of(budget))
        try:
            await budgets.update_status({**budget, "status": status})
        except NotFound:
            return

    async def _wanted(self, budget: Json, pods: list[Json]) -> Wanted:
        """Return the expected and desired number of pods. Raises ScaleUnknown or StatusError."""
        at_least, at_most = budget["spec"].get("minAvailable"), budget["spec"].get("maxUnavailable")
        if at_most is None and isinstance(at_least, int):
            return Wanted(len(pods), at_least)
        if at_most is None and at_least is None:
            return Wanted(0, 0)
        try:
            expected = await self._scales.expected(pods)
        except (ScaleUnknown, StatusError) as error:
            message = f"Failed to calculate the number of expected pods: {error}"
            self._recorder.event(budget, WARNING, "CalculateExpectedPodCountFailed", message)
            raise
        if expected.unmanaged:
            self._recorder.event(budget, WARNING, "UnmanagedPods", _unmanaged(budget))
        total = expected.replicas
        healthy = scaled(at_least, total) if at_most is None else max(0, total - scaled(at_most, total))
        return Wanted(total, healthy)


def _unmanaged(budget: Json) -> str:
    selector = format_label_selector(budget["spec"].get("selector"))
    return (
        f"Pods selected by this PodDisruptionBudget (selector: {selector}) were found to be unmanaged. As a result, the"
        " status of the PDB cannot be calculated correctly, which may result in undefined behavior. To account for"
        ' these pods please set ".spec.minAvailable" field of the PDB to an integer value.'
    )


class StalePodDisruption:
    """Sets stale DisruptionTarget conditions to False: the pod was not deleted within two minutes."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._pods = context.informer(PODS)
        self._queue = context.queue(_NAME, str)

    async def run(self) -> None:
        clock = self._context.clock
        await Controller(_NAME, self._sync, caches=(self._pods,), queue=self._queue, clock=clock).run()

    def watch(self, pod: Json) -> None:
        """Enqueue the pod for the time its condition becomes stale."""
        if (seconds := seconds_until_stale(pod, utc_now(self._context.clock))) is not None:
            self._queue.add_after(meta_namespace_key(pod), seconds)

    async def _sync(self, key: str) -> Requeue | None:
        pod = self._pods.indexer.get_by_key(key)
        seconds = None if pod is None else seconds_until_stale(pod, utc_now(self._context.clock))
        if pod is None or seconds is None:
            return None
        if seconds > 0:
            return Requeue(seconds)
        pods = self._context.client.for_resource(PODS, namespace=namespace_of(pod))
        try:
            await pods.update_status(without_disruption(pod, utc_now(self._context.clock)))
        except NotFound:
            return None
        return None


def seconds_until_stale(pod: Json, now: datetime) -> float | None:
    """Return the seconds until the condition is stale, 0 if stale now; None if it never is, as for kubelet
    terminations."""
    condition = find_condition(pod, _TARGET) or {}
    status = pod.get("status") or {}
    if is_deleting(pod) or condition.get("status") != "True":
        return None
    if condition.get("reason") == "TerminationByKubelet" or status.get("phase") in ("Failed", "Succeeded"):
        return None
    since = parse_time(condition["lastTransitionTime"]) if condition.get("lastTransitionTime") else None
    return 0.0 if since is None else max(0.0, (STALE_AFTER - (now - since)).total_seconds())


def without_disruption(pod: Json, now: datetime) -> Json:
    condition: Json = {"type": _TARGET, "status": "False", "lastTransitionTime": format_time(now)}
    if metadata(pod).get("generation"):
        condition["observedGeneration"] = metadata(pod)["generation"]
    status = pod["status"]
    return {**pod, "status": {**status, "conditions": with_condition(status["conditions"], condition)}}
