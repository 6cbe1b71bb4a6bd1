"""Stale DisruptionTarget conditions: set to False if the pod is not deleted within two minutes."""

from __future__ import annotations

from datetime import datetime, timedelta

from pilothouse.client.cache.keys import meta_namespace_key
from pilothouse.client.clock import utc_now
from pilothouse.client.controller import Controller, Requeue
from pilothouse.controllers.context import ControllerContext
from pilothouse.controllers.resources import PODS
from pilothouse.kinds.conditions import find_condition, with_condition
from pilothouse.kinds.deletion import is_deleting
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json, metadata, namespace_of
from pilothouse.machinery.times import format_time, parse_time

STALE_AFTER = timedelta(minutes=2)
_NAME = "stale_pod_disruption"
_TARGET = "DisruptionTarget"


class StalePodDisruption:
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
