"""Event handlers that enqueue the replica sets affected by a replica set or pod."""

from __future__ import annotations

from pilothouse.client.cache.handlers import Deleted, ResourceEventHandlerFuncs
from pilothouse.client.cache.keys import deletion_handling_key, meta_namespace_key
from pilothouse.client.workqueue.rate_limiting import RateLimitingQueue
from pilothouse.controllers.workloads.expectations import ControllerExpectations
from pilothouse.controllers.workloads.notifications import PodNotifications
from pilothouse.controllers.workloads.owner_lookup import OwnerLookup
from pilothouse.controllers.workloads.pacing import Pacing
from pilothouse.machinery.objects import Json, metadata, uid_of


class Notifications:
    def __init__(
        self,
        owners: OwnerLookup,
        queue: RateLimitingQueue[str],
        pacing: Pacing,
        expectations: ControllerExpectations,
    ) -> None:
        self._owners = owners
        self._queue = queue
        self._pacing = pacing
        self._expectations = expectations

    def of_replica_sets(self) -> ResourceEventHandlerFuncs:
        return ResourceEventHandlerFuncs(add=self._set_added, update=self._set_updated, delete=self._set_deleted)

    def of_pods(self) -> ResourceEventHandlerFuncs:
        return PodNotifications(self._owners, self._queue, self._pacing, expectations=self._expectations).handlers()

    def _set_added(self, replica_set: Json) -> None:
        self._queue.add(meta_namespace_key(replica_set))

    def _set_updated(self, old: Json, new: Json) -> None:
        """Enqueue a changed spec without pacing."""
        if uid_of(old) != uid_of(new):
            self._set_deleted(old)
        if metadata(old).get("generation") != metadata(new).get("generation"):
            self._set_added(new)
        else:
            self._pacing.add(meta_namespace_key(new))

    def _set_deleted(self, deleted: Deleted) -> None:
        """Forget expectations and pacing: a new object of the same name starts afresh."""
        key = deletion_handling_key(deleted)
        self._expectations.forget(key)
        self._pacing.forget(key)
        self._queue.add(key)
