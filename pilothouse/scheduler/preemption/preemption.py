"""DefaultPreemption: finds a node that fits after evicting pods of lower priority, and evicts these pods.

The preempting pod is nominated for the node and retried after the evictions. Until then the pod counts as present on
the node, so pods of lower priority cannot take its place.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence

from pilothouse.kinds.conditions import find_condition
from pilothouse.machinery import version_rules
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import PilothouseError
from pilothouse.scheduler.cache.node_info import NodeInfo
from pilothouse.scheduler.cache.pod_info import PodInfo
from pilothouse.scheduler.diagnosis import Diagnosis, FitError, Rejection
from pilothouse.scheduler.framework import Framework
from pilothouse.scheduler.plugins.default_preemption import DefaultPreemption
from pilothouse.scheduler.pod_writer import DISRUPTION_TARGET, PREEMPTED, PodWriter, SchedulerEvents
from pilothouse.scheduler.preemption.victims import Victims, find_victims
from pilothouse.scheduler.queue.scheduling_queue import SchedulingQueue

logger = logging.getLogger(__name__)

_LEAST_CANDIDATES, _PERCENTAGE = 100, 10
_LONGEST_SEARCH = 0.025
"""Maximum seconds of a search; the search holds the event loop."""
_NOT_HELPFUL = Rejection(DefaultPreemption.name, ("Preemption is not helpful for scheduling",), is_final=True)


@dataclass(frozen=True, slots=True)
class Outcome:
    nominated: str | None = None
    """Nominated node; empty = no node found; None = keep the pod's nomination."""
    message: str = ""


class Preemption:
    def __init__(
        self, framework: Framework, queue: SchedulingQueue, writer: PodWriter, events: SchedulerEvents
    ) -> None:
        self._framework, self._handle, self._writer, self._events = framework, framework.handle, writer, events
        self._queue = queue
        self._waiting: asyncio.Queue[tuple[PodInfo, Victims]] = asyncio.Queue()

    def make_room(self, pod: PodInfo, diagnosis: Diagnosis) -> Outcome:
        """Select victims and start their eviction."""
        if pod.spec.get("preemptionPolicy") == "Never":
            return Outcome(message="preemption: not eligible due to preemptionPolicy=Never.")
        if self._waits_for_victims(pod, diagnosis):
            return Outcome(message="preemption: not eligible due to a terminating pod on the nominated node.")
        nodes = [node for node in self._handle.cache.nodes if diagnosis.may_be_resolved(node.name)]
        why_not = Diagnosis(for_absent=_NOT_HELPFUL)
        candidates = self._dry_run(pod, nodes, why_not) if nodes else []
        outcome = candidates or FitError(why_not, len(self._handle.cache.nodes))
        if isinstance(outcome, FitError):
            return Outcome("", f"preemption: {outcome}")
        chosen = min(outcome, key=lambda victims: victims.cost)
        self._handle.preempting.add(pod.uid)
        self._waiting.put_nowait((pod, chosen))
        message = ""
        if version_rules.holds("PotentialNodes"):
            where = f"potential placement for pod on node {chosen.node_name}"
            message = f"preemption: found a {where}, preempting {len(chosen.pods)} victims"
        return Outcome(chosen.node_name, message)

    async def run(self) -> None:
        """Evict victims until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                pod, victims = await self._waiting.get()
                tasks.create_task(self._execute(pod, victims))

    def _waits_for_victims(self, pod: PodInfo, diagnosis: Diagnosis) -> bool:
        node = self._handle.cache.node(pod.nominated_node) if pod.nominated_node else None
        if node is None or not diagnosis.may_be_resolved(node.name):
            return False
        return any(other.priority < pod.priority and _is_going_for_another(other) for other in node.pods.values())

    def _dry_run(self, pod: PodInfo, nodes: Sequence[NodeInfo], why_not: Diagnosis) -> list[Victims]:
        """Search for candidates until enough candidates violate no budget, or the time limit is reached."""
        filters = self._framework.pre_filter(pod)
        if isinstance(filters, Rejection):
            return []
        budgets: list[Json] = self._handle.listers.disruption_budgets.list()
        enough = min(max(len(nodes) * _PERCENTAGE // 100, _LEAST_CANDIDATES), len(nodes))
        offset = self._handle.random.randrange(len(nodes))
        candidates: list[Victims] = []
        end = time.monotonic() + _LONGEST_SEARCH
        for node in (*nodes[offset:], *nodes[:offset]):
            victims = find_victims(pod, node, filters, self._framework, budgets)
            if isinstance(victims, Rejection):
                why_not.reject(node.name, victims)
            elif victims.pods:
                candidates.append(victims)
                is_enough = len(candidates) >= enough or time.monotonic() > end
                if is_enough and any(not candidate.broken_budgets for candidate in candidates):
                    break
        return candidates

    async def _execute(self, pod: PodInfo, victims: Victims) -> None:
        """Evict the victims. The pod is retried once the victims are gone, or at once if an eviction fails."""
        try:
            # Clear the nominations of pods with lower priority on the node, which may no longer fit.
            for nominated in self._handle.nominator.pods_for(victims.node_name):
                if nominated.priority < pod.priority:
                    await self._writer.set_nominated(nominated, "")
            going = [victim for victim in victims.pods if not victim.is_terminating]
            await asyncio.gather(*(self._delete(victim, pod, victims.node_name) for victim in going))
        except PilothouseError as error:
            logger.warning("can not make room for pod %s on %s: %s", pod.key, victims.node_name, error)
            self._handle.preempting.discard(pod.uid)
            self._queue.activate(pod.uid)
        else:
            self._handle.preempting.discard(pod.uid)
            self._queue.release(pod.uid)

    async def _delete(self, victim: PodInfo, pod: PodInfo, node_name: str) -> None:
        await self._writer.preempt(victim, pod.scheduler_name)
        self._events.preempted(victim, pod, node_name)


def _is_going_for_another(pod: PodInfo) -> bool:
    condition = find_condition(pod.pod, DISRUPTION_TARGET) or {}
    return pod.is_terminating and condition.get("status") == "True" and condition.get("reason") == PREEMPTED
