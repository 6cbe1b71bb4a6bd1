"""Events recorded by the scheduler."""

from __future__ import annotations

from pilothouse.client.clock import Clock
from pilothouse.client.events.event import NORMAL, WARNING
from pilothouse.client.events.series_recorder import SeriesRecorder
from pilothouse.client.rest.client import Client
from pilothouse.machinery.objects import Json
from pilothouse.scheduler.cache.pod_info import DEFAULT_SCHEDULER, PodInfo

_LONGEST_NOTE, _CUT_OFF = 1024, " ..."


class SchedulerEvents:
    def __init__(self, client: Client, clock: Clock) -> None:
        self._recorder = SeriesRecorder(client, DEFAULT_SCHEDULER, clock=clock)

    async def run(self) -> None:
        await self._recorder.run()

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
