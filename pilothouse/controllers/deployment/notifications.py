"""Which deployments are to be looked at when they, their replica sets or their pods change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pilothouse.client.cache.handlers import Deleted, ResourceEventHandlerFuncs
from pilothouse.client.cache.keys import last_known_state, meta_namespace_key
from pilothouse.client.cache.shared_informer import SharedIndexInformer
from pilothouse.client.controller.enqueue import enqueue_keys
from pilothouse.client.workqueue.rate_limiting import RateLimitingQueue
from pilothouse.controllers.deployment.fenceposts import RECREATE, strategy_of
from pilothouse.controllers.workloads.controller_index import CONTROLLER_UID_INDEX
from pilothouse.controllers.workloads.owner_lookup import OwnerLookup
from pilothouse.machinery.objects import Json, resource_version_of, uid_of


class Notifications:
    """The informers of replica sets and pods must be indexed by controller."""

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
        return ResourceEventHandlerFuncs(add=self._set_added, update=self._set_updated, delete=self._set_deleted)

    def of_pods(self) -> ResourceEventHandlerFuncs:
        """Their replica sets tell everything else."""
        return ResourceEventHandlerFuncs(delete=self._pod_deleted)

    def _set_added(self, replica_set: Json) -> None:
        self._enqueue(self._deployments.concerned_by_addition(replica_set))

    def _set_updated(self, old: Json, new: Json) -> None:
        if resource_version_of(old) != resource_version_of(new):
            self._enqueue(self._deployments.concerned_by_change(old, new))

    def _set_deleted(self, deleted: Deleted) -> None:
        replica_set = last_known_state(deleted)
        if replica_set is not None and (deployment := self._deployments.owner_of(replica_set)) is not None:
            self._enqueue((deployment,))

    def _pod_deleted(self, deleted: Deleted) -> None:
        """A deployment that recreates its pods waits for the last of the old ones."""
        pod = last_known_state(deleted)
        replica_set = None if pod is None else self._owners_of_pods.owner_of(pod)
        deployment = None if replica_set is None else self._deployments.owner_of(replica_set)
        if deployment is None or strategy_of(deployment) != RECREATE:
            return
        if not any(self._pods_of(deployment)):
            self._enqueue((deployment,))

    def _pods_of(self, deployment: Json) -> Iterator[Json]:
        for replica_set in self._replica_sets.indexer.by_index(CONTROLLER_UID_INDEX, uid_of(deployment)):
            yield from self._pods.indexer.by_index(CONTROLLER_UID_INDEX, uid_of(replica_set))

    def _enqueue(self, deployments: Iterable[Json]) -> None:
        for each in deployments:
            self._queue.add(meta_namespace_key(each))
