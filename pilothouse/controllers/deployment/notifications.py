"""Event handlers that enqueue the deployments affected by a deployment, replica set or pod."""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.client.cache.handlers import Deleted, ResourceEventHandlerFuncs
from pilothouse.client.cache.keys import last_known_state, meta_namespace_key
from pilothouse.client.cache.shared_informer import SharedIndexInformer
from pilothouse.client.controller import enqueue_keys
from pilothouse.client.workqueue.rate_limiting import RateLimitingQueue
from pilothouse.controllers.deployment.fenceposts import RECREATE, strategy_of
from pilothouse.controllers.workloads.controller_index import CONTROLLER_UID_INDEX
from pilothouse.controllers.workloads.notifications import OwnedNotifications
from pilothouse.controllers.workloads.owner_lookup import OwnerLookup
from pilothouse.machinery.objects import Json, uid_of


class Notifications:
    """Event handlers of the controller. The informers of replica sets and pods must be indexed by controller."""

    def __init__(
        self,
        queue: RateLimitingQueue[str],
        *,
        deployments: SharedIndexInformer,
        replica_sets: SharedIndexInformer,
        pods: SharedIndexInformer,
    ) -> None:
        self._queue = queue
        self._deployments = OwnerLookup(deployments, "Deployment")
        self._owners_of_pods = OwnerLookup(replica_sets, "ReplicaSet")
        self._replica_sets = replica_sets
        self._pods = pods

    def of_deployments(self) -> ResourceEventHandlerFuncs:
        return enqueue_keys(self._queue)

    def of_replica_sets(self) -> ResourceEventHandlerFuncs:
        return OwnedNotifications(self._deployments, self._queue.add).handlers()

    def of_pods(self) -> ResourceEventHandlerFuncs:
        """Handle only deletions: replica sets report all other pod changes."""
        return ResourceEventHandlerFuncs(delete=self._pod_deleted)

    def _pod_deleted(self, deleted: Deleted) -> None:
        """Enqueue a Recreate deployment after the deletion of its last old pod."""
        pod = last_known_state(deleted)
        replica_set = None if pod is None else self._owners_of_pods.owner_of(pod)
        deployment = None if replica_set is None else self._deployments.owner_of(replica_set)
        if deployment is None or strategy_of(deployment) != RECREATE:
            return
        if not any(self._pods_of(deployment)):
            self._queue.add(meta_namespace_key(deployment))

    def _pods_of(self, deployment: Json) -> Iterator[Json]:
        for replica_set in self._replica_sets.indexer.by_index(CONTROLLER_UID_INDEX, uid_of(deployment)):
            yield from self._pods.indexer.by_index(CONTROLLER_UID_INDEX, uid_of(replica_set))
