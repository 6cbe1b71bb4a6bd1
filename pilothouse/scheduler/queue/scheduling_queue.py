"""The pods that wait for a node, in four places:

              rejected            something changed that may help
    active ────────────▶ unschedulable ────────────▶ back-off ──▶ active      (sooner, if nobody else waits)
       ▲    an error                                     ▲
       │────────────────────────────────────────────────┘
    gated: among the unschedulable, but never tried, until no plugin objects

A cycle never awaits, so no change can come between an attempt and its end: nothing need be kept of changes meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TypeAlias

from pilothouse.client.clock import Clock, Timer
from pilothouse.client.idleness import register_worker
from pilothouse.machinery.objects import Json
from pilothouse.scheduler.cache.pod_info import PodInfo
from pilothouse.scheduler.cluster_events import TIMED_OUT, ClusterEvent, pod_changes
from pilothouse.scheduler.queue.back_off import BackOff
from pilothouse.scheduler.queue.hints import QueueingHints
from pilothouse.scheduler.queue.pod_heap import PodHeap
from pilothouse.scheduler.queue.queued_pod import QueuedPod

GREATEST_WAIT = 300.0
"""After so long, a pod is tried again even if nothing seems to have changed."""
_LOOKED_FOR_EVERY = 30.0

PreEnqueue: TypeAlias = Callable[[PodInfo], str]
"""Return the plugin that does not let the pod be tried; empty if none objects."""


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
        """Whether there is a pod to be tried, or one whose back-off will have ended `within` so many seconds."""
        soon = self._clock.now() + within
        backing_off = (*self._backing_off, *self._after_errors)
        return bool(self._active) or any(self._back_off.ends(queued) <= soon for queued in backing_off)

    async def wait(self) -> None:
        """Return when there is a pod to be tried."""
        await self._has_some.wait()

    def pop(self) -> QueuedPod | None:
        """Return the pod whose turn it is, or None."""
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
        """A pod that was rejected is tried again if its own change may help."""
        for place in (self._active, self._backing_off, self._after_errors):
            if (waiting := place.get(new.uid)) is not None:
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
        for place in (self._active, self._backing_off, self._after_errors):
            place.remove(uid)
        self._unschedulable.pop(uid, None)

    def add_rejected(self, queued: QueuedPod, rejected_by: Iterable[str]) -> None:
        """Put a pod back for which no node was found. Without anybody who rejected it, it was an error."""
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
        """Let all pods be tried again for which the change may make a difference."""
        if not self._unschedulable or not self._hints.concerns_anybody(event):
            return
        for queued in [*self._unschedulable.values()]:
            if (only is None or only(queued.pod)) and self._hints.is_worth_trying(queued, event, old, new):
                self._requeue(queued)

    def activate(self, uid: str) -> None:
        """Let a pod be tried again at once."""
        queued = self._unschedulable.pop(uid, None) or self._backing_off.remove(uid) or self._after_errors.remove(uid)
        if queued is not None:
            self._enqueue(queued)

    def release(self, uid: str) -> None:
        """Ask again whether a pod may be tried that was not let in."""
        queued = self._unschedulable.get(uid)
        if queued is not None and queued.gated_by:
            self._requeue(queued)

    async def run(self) -> None:
        """Let those be tried again that have waited very long, until cancelled."""
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

    def _enqueue(self, queued: QueuedPod, place: PodHeap | None = None) -> None:
        queued.gated_by = self._pre_enqueue(queued.pod)
        if queued.gated_by:
            self._unschedulable[queued.pod.uid] = queued
        else:
            (self._active if place is None else place).push(queued)
            self._has_some.set()

    def _can_cut_back_off_short(self) -> bool:
        first = self._backing_off.first()
        return first is not None and self._back_off.may_be_cut_short(first) <= self._clock.now()

    def _set_timer(self) -> None:
        """Wake up when the next pod may be tried that has to wait at least so long."""
        waiting, failed = self._backing_off.first(), self._after_errors.first()
        times = [self._back_off.may_be_cut_short(waiting)] if waiting else []
        times += [self._back_off.ends(failed)] if failed else []
        if times and self._timer is None:
            self._timer = self._clock.call_later(max(min(times) - self._clock.now(), 0.0), self._end_back_offs)

    def _end_back_offs(self) -> None:
        self._timer = None
        now = self._clock.now()
        for place in (self._backing_off, self._after_errors):
            while (first := place.first()) and self._back_off.ends(first) <= now:
                place.remove(first.pod.uid)
                self._enqueue(first)
        if self._can_cut_back_off_short():
            self._has_some.set()
        else:
            self._set_timer()
