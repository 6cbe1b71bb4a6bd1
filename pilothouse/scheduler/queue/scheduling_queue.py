"""The scheduling queue, with four states:

              rejected                 helpful event
    active ────────────▶ unschedulable ────────────▶ back-off ──▶ active      (sooner if no other pod waits)
       ▲    an error                                     ▲
       │────────────────────────────────────────────────┘
    gated: unschedulable, and not retried until no PreEnqueue plugin blocks

A cycle never awaits, so no event can arrive during an attempt: there is no need to record in-flight events.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from pilothouse.client.clock import Clock, Timer
from pilothouse.client.idleness import register_worker
from pilothouse.machinery.failed_attempts import log_failed_attempt
from pilothouse.machinery.objects import Json
from pilothouse.scheduler.cache.pod_info import PodInfo
from pilothouse.scheduler.cluster_events import TIMED_OUT, ClusterEvent, EventHint, Subject, pod_changes
from pilothouse.scheduler.queue.queued_pod import BackOff, PodHeap, QueuedPod

GREATEST_WAIT = 300.0
"""Seconds after which a pod is retried without an event."""
_LOOKED_FOR_EVERY = 30.0

PreEnqueue: TypeAlias = Callable[[PodInfo], str]
"""Returns the plugin that blocks the pod; empty if no plugin blocks."""

logger = logging.getLogger(__name__)


class SchedulingQueue:
    def __init__(
        self, pre_enqueue: PreEnqueue, hints: QueueingHints, clock: Clock, *, back_off: BackOff | None = None
    ) -> None:
        self._pre_enqueue, self._hints, self._clock = pre_enqueue, hints, clock
        self._back_off = back_off or BackOff()
        self._active = PodHeap(lambda queued: queued.order)
        self._backing_off = PodHeap(lambda queued: (self._back_off.may_be_cut_short(queued), queued.order))
        self._after_errors = PodHeap(lambda queued: (self._back_off.ends(queued), queued.order))
        self._unschedulable: dict[str, QueuedPod] = {}
        self._timer: Timer | None = None
        self._has_some = asyncio.Event()
        register_worker(self)

    def is_busy(self, within: float) -> bool:
        """Whether a pod is ready, or leaves back-off within so many seconds."""
        soon = self._clock.now() + within
        backing_off = (*self._backing_off, *self._after_errors)
        return bool(self._active) or any(self._back_off.ends(queued) <= soon for queued in backing_off)

    async def wait(self) -> None:
        """Wait until a pod is ready."""
        await self._has_some.wait()

    def pop(self) -> QueuedPod | None:
        """Return the next pod, or None."""
        queued = self._active.pop()
        if queued is None and self._can_cut_back_off_short():
            queued = self._backing_off.pop()
        if queued is None:
            self._has_some.clear()
            self._set_timer()
        else:
            queued.attempts += 1
        return queued

    def add(self, pod: PodInfo) -> None:
        self._enqueue(QueuedPod(pod, self._clock.now()))

    def update(self, old: PodInfo, new: PodInfo) -> None:
        """Update a pending pod; a rejected pod is retried if its own change may help."""
        for heap in (self._active, self._backing_off, self._after_errors):
            if (waiting := heap.get(new.uid)) is not None:
                waiting.pod = new
                return
        rejected = self._unschedulable.get(new.uid)
        if rejected is None:
            self.add(new)
            return
        rejected.pod = new
        if any(self._hints.is_worth_trying(rejected, event, old.pod, new.pod) for event in pod_changes(old, new)):
            self._requeue(rejected)

    def delete(self, uid: str) -> None:
        for heap in (self._active, self._backing_off, self._after_errors):
            heap.remove(uid)
        self._unschedulable.pop(uid, None)

    def add_rejected(self, queued: QueuedPod, rejected_by: Iterable[str]) -> None:
        """Put back a pod after a failed attempt. An empty `rejected_by` denotes an error."""
        queued.rejected_by, queued.since = frozenset(rejected_by), self._clock.now()
        if queued.rejected_by:
            queued.unschedulable_count += 1
            queued.errors_in_a_row = 0
            self._unschedulable[queued.pod.uid] = queued
        else:
            queued.errors_in_a_row += 1
            self._after_errors.push(queued)
            self._set_timer()

    def move_all(
        self,
        event: ClusterEvent,
        old: Json | None = None,
        new: Json | None = None,
        *,
        only: Callable[[PodInfo], bool] | None = None,
    ) -> None:
        """Retry all pods that the event may make schedulable."""
        if not self._unschedulable or not self._hints.concerns_anybody(event):
            return
        for queued in [*self._unschedulable.values()]:
            if (only is None or only(queued.pod)) and self._hints.is_worth_trying(queued, event, old, new):
                self._requeue(queued)

    def activate(self, uid: str) -> None:
        """Retry the pod at once."""
        queued = self._unschedulable.pop(uid, None) or self._backing_off.remove(uid) or self._after_errors.remove(uid)
        if queued is not None:
            self._enqueue(queued)

    def release(self, uid: str) -> None:
        """Run the PreEnqueue check of a gated pod again."""
        queued = self._unschedulable.get(uid)
        if queued is not None and queued.gated_by:
            self._requeue(queued)

    async def run(self) -> None:
        """Retry pods that have waited GREATEST_WAIT seconds, until cancelled."""
        while True:
            await self._clock.sleep(_LOOKED_FOR_EVERY)
            oldest = self._clock.now() - GREATEST_WAIT
            for queued in [*self._unschedulable.values()]:
                if queued.since <= oldest and self._hints.is_worth_trying(queued, TIMED_OUT, None, None):
                    self._requeue(queued)

    def pending(self) -> dict[str, int]:
        gated = sum(bool(queued.gated_by) for queued in self._unschedulable.values())
        return {
            "active": len(self._active),
            "backoff": len(self._backing_off) + len(self._after_errors),
            "unschedulable": len(self._unschedulable) - gated,
            "gated": gated,
        }

    def _requeue(self, queued: QueuedPod) -> None:
        self._unschedulable.pop(queued.pod.uid, None)
        must_wait = not queued.gated_by and self._back_off.ends(queued) > self._clock.now()
        self._enqueue(queued, self._backing_off if must_wait else self._active)

    def _enqueue(self, queued: QueuedPod, heap: PodHeap | None = None) -> None:
        queued.gated_by = self._pre_enqueue(queued.pod)
        if queued.gated_by:
            self._unschedulable[queued.pod.uid] = queued
        else:
            (self._active if heap is None else heap).push(queued)
            self._has_some.set()

    def _can_cut_back_off_short(self) -> bool:
        first = self._backing_off.first()
        return first is not None and self._back_off.may_be_cut_short(first) <= self._clock.now()

    def _set_timer(self) -> None:
        """Set the timer for the next end of a back-off."""
        waiting, failed = self._backing_off.first(), self._after_errors.first()
        times = [self._back_off.may_be_cut_short(waiting)] if waiting else []
        times += [self._back_off.ends(failed)] if failed else []
        if times and self._timer is None:
            self._timer = self._clock.call_later(max(min(times) - self._clock.now(), 0.0), self._end_back_offs)

    def _end_back_offs(self) -> None:
        self._timer = None
        now = self._clock.now()
        for heap in (self._backing_off, self._after_errors):
            while (first := heap.first()) and self._back_off.ends(first) <= now:
                heap.remove(first.pod.uid)
                self._enqueue(first)
        if self._can_cut_back_off_short():
            self._has_some.set()
        else:
            self._set_timer()


class QueueingHints:
    """The events after which a plugin may accept a pod that the plugin has rejected."""

    def __init__(self, hints: Mapping[str, Iterable[EventHint]]) -> None:
        """`hints`: plugin name → event hints."""
        self._hints = {plugin: tuple(events) for plugin, events in hints.items()}
        self._concerned: dict[ClusterEvent, dict[str, list[EventHint]]] = {}

    def is_worth_trying(self, queued: QueuedPod, event: ClusterEvent, old: Json | None, new: Json | None) -> bool:
        """Return whether a plugin that rejected the pod may now accept."""
        if event.subject is Subject.ANYTHING:
            return True
        concerned = self._concerned_by(event)
        blamed = (queued.gated_by,) if queued.gated_by else queued.rejected_by
        return any(
            hint.is_worth_trying is None or _ask(hint, queued, old, new)
            for plugin in blamed
            for hint in concerned.get(plugin, ())
        )

    def concerns_anybody(self, event: ClusterEvent) -> bool:
        return event.subject is Subject.ANYTHING or bool(self._concerned_by(event))

    def _concerned_by(self, event: ClusterEvent) -> dict[str, list[EventHint]]:
        if event not in self._concerned:
            concerned = {
                plugin: [hint for hint in hints if hint.concerns(event)] for plugin, hints in self._hints.items()
            }
            self._concerned[event] = {plugin: hints for plugin, hints in concerned.items() if hints}
        return self._concerned[event]


def _ask(hint: EventHint, queued: QueuedPod, old: Json | None, new: Json | None) -> bool:
    """Call the hint's predicate. An error counts as True: a futile attempt costs less than a forgotten pod."""
    assert hint.is_worth_trying is not None
    try:
        return hint.is_worth_trying(queued.pod, old, new)
    except Exception as error:
        log_failed_attempt(logger, error, "can not tell whether a change concerns pod %s", queued.pod.key)
        return True
