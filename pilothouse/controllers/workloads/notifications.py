"""Event handlers that enqueue the owners of pods and of other owned objects.

    pods.add_event_handler(PodNotifications(owners, queue, pacing, expectations=expectations).handlers())

An added object enqueues its owner, or the owners that could adopt it. A changed object also enqueues its former owner.
A deleted object enqueues its owner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pilothouse.client.cache.handlers import Deleted, ResourceEventHandlerFuncs
from pilothouse.client.cache.keys import last_known_state, meta_namespace_key
from pilothouse.client.clock import Clock
from pilothouse.client.workqueue.rate_limiting import RateLimitingQueue
from pilothouse.controllers.workloads.expectations import ControllerExpectations
from pilothouse.controllers.workloads.owner_lookup import OwnerLookup
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kinds.pods import is_ready
from pilothouse.machinery.objects import Json, labels_of, resource_version_of, uid_of

_PER_POD = 0.0003
_NOT_WORTH_IT = 0.005
_LONGEST = 0.5


class OwnedNotifications:
    """Event handlers that call `enqueue` with the affected owners of an object."""

    def __init__(self, owners: OwnerLookup, enqueue: Callable[[str], object]) -> None:
        self._owners = owners
        self._enqueue_key = enqueue

    def handlers(self) -> ResourceEventHandlerFuncs:
        return ResourceEventHandlerFuncs(add=self.added, update=self.updated, delete=self.deleted)

    def added(self, obj: Json) -> None:
        self.enqueue(self._owners.concerned_by_addition(obj))

    def updated(self, old: Json, new: Json) -> None:
        """Enqueue the affected owners; resyncs (same resourceVersion) are ignored."""
        if resource_version_of(old) != resource_version_of(new):
            self.enqueue(self._owners.concerned_by_change(old, new))

    def deleted(self, deleted: Deleted) -> None:
        obj = last_known_state(deleted)
        if obj is not None and (owner := self._owners.owner_of(obj)) is not None:
            self.enqueue((owner,))

    def enqueue(self, owners: Iterable[Json]) -> None:
        for owner in owners:
            self._enqueue_key(meta_namespace_key(owner))


class PodNotifications(OwnedNotifications):
    """Event handlers for pods: pace owners, observe expectations, and requeue after minReadySeconds.

    A terminating pod counts as deleted: its replacement is created before the kubelet has finished. `skew` is added to
    minReadySeconds.
    """

    def __init__(
        self,
        owners: OwnerLookup,
        queue: RateLimitingQueue[str],
        pacing: Pacing,
        *,
        expectations: ControllerExpectations,
        skew: float = 0.0,
    ) -> None:
        super().__init__(owners, pacing.add)
        self._queue = queue
        self._expectations = expectations
        self._skew = skew

    def added(self, obj: Json) -> None:
        if is_deleting(obj):
            # After a restart, the first event may show a terminating pod: no creation is expected.
            self.deleted(obj)
            return
        if (owner := self._owners.owner_of(obj)) is not None:
            self._expectations.creation_observed(meta_namespace_key(owner))
        super().added(obj)

    def updated(self, old: Json, new: Json) -> None:
        if resource_version_of(old) == resource_version_of(new):
            return
        if is_deleting(new):
            self.deleted(new)
            if labels_of(old) != labels_of(new):
                self.deleted(old)
            return
        concerned = self._owners.concerned_by_change(old, new)
        self.enqueue(concerned)
        if is_ready(new) and not is_ready(old):
            enqueue_when_available(concerned, self._queue, self._skew)

    def deleted(self, deleted: Deleted) -> None:
        pod = last_known_state(deleted)
        if pod is not None and (owner := self._owners.owner_of(pod)) is not None:
            self._expectations.deletion_observed(meta_namespace_key(owner), uid_of(pod))
            self.enqueue((owner,))


def enqueue_when_available(owners: Iterable[Json], queue: RateLimitingQueue[str], skew: float = 0.0) -> None:
    """Enqueue the owners again after minReadySeconds, when a ready pod becomes available."""
    for owner in owners:
        if seconds := owner["spec"].get("minReadySeconds"):
            queue.add_after(meta_namespace_key(owner), seconds + skew)


class Pacing:
    """Adds keys to a queue, delayed after a recent sync of an owner with many pods.

    A sync iterates over all pods of an owner, so syncing on each of a thousand pod events costs a million steps. After
    a sync, the owner therefore rests for a time proportional to its number of pods. Owners with few pods are not
    delayed.
    """

    def __init__(self, queue: RateLimitingQueue[str], clock: Clock) -> None:
        self._queue = queue
        self._clock = clock
        self._not_before: dict[str, float] = {}

    def add(self, key: str) -> None:
        not_before = self._not_before.get(key)
        if not_before is not None and (wait := not_before - self._clock.now()) > 0:
            self._queue.add_after(key, wait)
        else:
            self._queue.add(key)

    def looked(self, key: str, pods: int) -> None:
        """Record a sync of the owner with this number of pods."""
        wait = min(pods * _PER_POD, _LONGEST)
        if wait > _NOT_WORTH_IT:
            self._not_before[key] = self._clock.now() + wait
        else:
            self._not_before.pop(key, None)

    def forget(self, key: str) -> None:
        self._not_before.pop(key, None)
