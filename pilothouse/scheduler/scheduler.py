"""The scheduling loop: takes pods from the queue one by one, selects a node, and binds in the background.

A pod counts for its node as soon as the node is selected, so the loop never waits for a binding. A failed binding is
rolled back, and the pod is retried.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from pilothouse.kinds.pods import has_ended
from pilothouse.machinery.event_loop import yield_to_loop
from pilothouse.machinery.failed_attempts import log_failed_attempt
from pilothouse.machinery.status_error import PilothouseError
from pilothouse.scheduler.cache.pod_info import PodInfo
from pilothouse.scheduler.cluster_events import POD_DELETED
from pilothouse.scheduler.cycle import SchedulingCycle
from pilothouse.scheduler.diagnosis import FitError, NoNodesAvailable
from pilothouse.scheduler.framework import Framework
from pilothouse.scheduler.plugins.devices.dynamic_resources import DynamicResources
from pilothouse.scheduler.pod_writer import SCHEDULER_ERROR, UNSCHEDULABLE, PodWriter, SchedulerEvents
from pilothouse.scheduler.preemption.preemption import Preemption
from pilothouse.scheduler.queue.queued_pod import QueuedPod
from pilothouse.scheduler.queue.scheduling_queue import SchedulingQueue

logger = logging.getLogger(__name__)

_TURN = 0.005
"""Seconds after which the loop yields to other tasks."""
_MOST_WRITES = 100
"""Maximum number of concurrent bindings and other writes; the loop pauses at the limit."""


class Scheduler:
    def __init__(
        self,
        framework: Framework,
        queue: SchedulingQueue,
        writer: PodWriter,
        events: SchedulerEvents,
        preemption: Preemption,
        *,
        percentage_of_nodes_to_score: int = 0,
    ) -> None:
        self._framework, self._queue, self._writer, self._events = framework, queue, writer, events
        self._handle, self._preemption = framework.handle, preemption
        self._cycle = SchedulingCycle(framework, percentage_of_nodes_to_score=percentage_of_nodes_to_score)
        self._tasks: asyncio.TaskGroup | None = None
        self._writes = asyncio.Semaphore(_MOST_WRITES)

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as self._tasks:
            self._tasks.create_task(self._queue.run())
            self._tasks.create_task(self._events.run())
            self._tasks.create_task(self._preemption.run())
            while True:
                await self._queue.wait()
                await self._schedule_for_a_turn()

    async def _schedule_for_a_turn(self) -> None:
        end = asyncio.get_running_loop().time() + _TURN
        while asyncio.get_running_loop().time() < end:
            if self._writes.locked():
                async with self._writes:
                    return
            queued = self._queue.pop()
            if queued is None:
                return
            self.schedule(queued)
        await yield_to_loop()

    def schedule(self, queued: QueuedPod) -> None:
        """Select a node for the pod, and start the binding."""
        pod = queued.pod
        if self._handle.cache.is_assumed(pod.uid):
            return
        if pod.is_terminating:
            self._events.failed(pod, f"skip schedule deleting pod: {pod.key}")
            return
        try:
            node = self._cycle.find_node(pod)
            placed = queued.pod.on_node(node.name)
            self._handle.cache.assume(placed)
            self._handle.nominator.delete(placed.uid)
            try:
                self._framework.reserve(placed, node)
            except Exception:
                self._handle.cache.forget(placed.uid)
                raise
            self._spawn(self._bind(queued, placed, node.name))
        except NoNodesAvailable as error:
            self._fail(queued, UNSCHEDULABLE, str(error), nominated="")
        except FitError as error:
            self._preempt(queued, error)
        except Exception as error:
            log_failed_attempt(logger, error, "can not schedule pod %s", pod.key)
            self._fail(queued, SCHEDULER_ERROR, str(error), nominated="")

    async def _bind(self, queued: QueuedPod, pod: PodInfo, node_name: str) -> None:
        try:
            if self._framework.has_pre_bind(pod):
                # Publish the nomination first: PreBind plugins may take long, and others need to see the target node.
                await self._writer.set_nominated(pod, node_name)
                await self._framework.pre_bind(pod, node_name)
            async with self._writes:
                await self._writer.bind(pod, node_name)
        except Exception as error:
            logger.debug("can not bind pod %s to %s: %s", pod.key, node_name, error)
            self._framework.unreserve(pod, node_name)
            self._handle.cache.forget(pod.uid)
            self._queue.move_all(POD_DELETED, pod.pod)
            self._fail(queued, SCHEDULER_ERROR, str(error), nominated="")
        else:
            self._events.scheduled(pod, node_name)

    def _preempt(self, queued: QueuedPod, error: FitError) -> None:
        diagnosis = error.diagnosis
        if diagnosis.pre_filter_message and DynamicResources.name not in diagnosis.plugins:
            # Upstream's DynamicResources plugin fails here because it has no state for the pod, and no further plugin
            # is called.
            diagnosis.post_filter_message, nominated = "not found", None
        else:
            outcome = self._preemption.make_room(queued.pod, diagnosis)
            nominated = outcome.nominated
            if outcome.nominated:
                diagnosis.post_filter_message = outcome.message
            elif outcome.message:
                has_claims = bool(queued.pod.spec.get("resourceClaims"))
                about_claims = "still not schedulable" if has_claims else "no new claims to deallocate"
                diagnosis.post_filter_message = f"{about_claims}, {outcome.message}"
        self._fail(queued, UNSCHEDULABLE, str(error), nominated=nominated, rejected_by=diagnosis.plugins)

    def _fail(
        self,
        queued: QueuedPod,
        reason: str,
        message: str,
        *,
        nominated: str | None,
        rejected_by: set[str] | frozenset[str] = frozenset(),
    ) -> None:
        """Requeue the pod if it is still pending, and report the reason."""
        current = self._handle.listers.pods.get_by_key(queued.pod.key)
        if current is None or current["metadata"]["uid"] != queued.pod.uid:
            return
        if current["spec"].get("nodeName") or has_ended(current):
            return
        queued.pod = PodInfo(current)
        self._queue.add_rejected(queued, rejected_by)
        self._handle.nominator.set(queued.pod, nominated)
        self._events.failed(queued.pod, message)
        self._spawn(self._say_why(queued.pod, reason, message, nominated))

    async def _say_why(self, pod: PodInfo, reason: str, message: str, nominated: str | None) -> None:
        try:
            async with self._writes:
                await self._writer.set_unscheduled(pod, reason, message, nominated)
        except PilothouseError as error:
            logger.debug("can not write the status of pod %s: %s", pod.key, error)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        assert self._tasks is not None
        self._tasks.create_task(work)
