"""Writes of the scheduler about pods: bindings, the PodScheduled condition, nominated nodes, and events."""

from __future__ import annotations

from pilothouse.client.clock import Clock
from pilothouse.client.events.event import NORMAL, WARNING
from pilothouse.client.events.series_recorder import SeriesRecorder
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.options import DeleteOptions, PatchType
from pilothouse.controllers.resources import PODS
from pilothouse.kinds.conditions import find_condition
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json
from pilothouse.machinery.times import now
from pilothouse.scheduler.cache.pod_info import DEFAULT_SCHEDULER, PodInfo

POD_SCHEDULED, DISRUPTION_TARGET = "PodScheduled", "DisruptionTarget"
UNSCHEDULABLE, SCHEDULER_ERROR = "Unschedulable", "SchedulerError"
PREEMPTED = "PreemptionByScheduler"

_LONGEST_NOTE, _CUT_OFF = 1024, " ..."


class PodWriter:
    def __init__(self, client: Client) -> None:
        self._pods = client.for_resource(PODS)

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        """Bind the pod. Raises StatusError or ConnectionFailed."""
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"namespace": pod.namespace, "name": pod.name, "uid": pod.uid},
            "target": {"kind": "Node", "name": node_name},
        }
        await self._pods.namespace(pod.namespace).create(binding, name=pod.name, subresource="binding")

    async def set_unscheduled(self, pod: PodInfo, reason: str, message: str, nominated: str | None) -> None:
        """Set PodScheduled to False with the reason, and the nominated node; None keeps the current nomination."""
        status = _changed_condition(pod, POD_SCHEDULED, "False", reason, message) | _changed_node(pod, nominated)
        await self._patch_status(pod, status)

    async def set_nominated(self, pod: PodInfo, node_name: str) -> None:
        """Set the nominated node; an empty name clears the nomination."""
        await self._patch_status(pod, _changed_node(pod, node_name))

    async def preempt(self, pod: PodInfo, scheduler_name: str) -> None:
        """Evict the pod in favour of a pod of higher priority. A missing pod is not an error."""
        message = f"{scheduler_name}: preempting to accommodate a higher priority pod"
        pods = self._pods.namespace(pod.namespace)
        try:
            await self._patch_status(pod, _changed_condition(pod, DISRUPTION_TARGET, "True", PREEMPTED, message))
            await pods.delete(pod.name, DeleteOptions(uid=pod.uid))
        except NotFound:
            return

    async def _patch_status(self, pod: PodInfo, status: Json) -> None:
        if status:
            pods = self._pods.namespace(pod.namespace)
            patch = {"metadata": {"uid": pod.uid}, "status": status}
            await pods.patch(pod.name, patch, PatchType.STRATEGIC, subresource="status")


def _changed_node(pod: PodInfo, nominated: str | None) -> Json:
    if nominated is None or nominated == pod.nominated_node:
        return {}
    return {"nominatedNodeName": nominated or None}


def _changed_condition(pod: PodInfo, kind: str, status: str, reason: str, message: str) -> Json:
    """Return a status with the condition; empty if the pod has the condition already."""
    condition = find_condition(pod.pod, kind) or {}
    wanted: Json = {"type": kind, "status": status, "reason": reason, "message": message}
    if generation := pod.pod["metadata"].get("generation"):
        wanted["observedGeneration"] = generation
    if wanted.items() <= condition.items():
        return {}
    moved = condition.get("status") != status
    since = now() if moved else condition.get("lastTransitionTime")
    return {"conditions": [{**wanted, "lastProbeTime": None, "lastTransitionTime": since}]}


class SchedulerEvents:
    def __init__(self, client: Client, clock: Clock) -> None:
        self._recorder = SeriesRecorder(client, DEFAULT_SCHEDULER, clock=clock)
        self.run = self._recorder.run

    def scheduled(self, pod: PodInfo, node_name: str) -> None:
        note = f"Successfully assigned {pod.key} to {node_name}"
        self._recorder.event(_typed(pod), NORMAL, "Scheduled", "Binding", note)

    def failed(self, pod: PodInfo, message: str) -> None:
        note = message if len(message) <= _LONGEST_NOTE else message[: _LONGEST_NOTE - len(_CUT_OFF)] + _CUT_OFF
        self._recorder.event(_typed(pod), WARNING, "FailedScheduling", "Scheduling", note)

    def preempted(self, victim: PodInfo, preemptor: PodInfo, node_name: str) -> None:
        note = f"Preempted by pod {preemptor.uid} on node {node_name}"
        self._recorder.event(_typed(victim), NORMAL, "Preempted", "Preempting", note)


def _typed(pod: PodInfo) -> Json:
    return {**pod.pod, "apiVersion": "v1", "kind": "Pod"}
