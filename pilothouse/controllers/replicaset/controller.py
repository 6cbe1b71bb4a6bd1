"""replicaset-controller: keeps the desired number of pods per replica set and updates its status."""

from __future__ import annotations

import asyncio
import logging

from pilothouse.client.cache.handlers import Deleted, ResourceEventHandlerFuncs
from pilothouse.client.cache.keys import deletion_handling_key, meta_namespace_key
from pilothouse.client.clock import utc_now
from pilothouse.client.controller import Controller, Requeue, TryAgain
from pilothouse.client.events.event import EventSource
from pilothouse.client.events.recorder import EventRecorder
from pilothouse.client.workqueue.rate_limiting import RateLimitingQueue
from pilothouse.controllers.context import ControllerContext
from pilothouse.controllers.replicaset.replicas import Replicas, calculated_status, is_up_to_date
from pilothouse.controllers.resources import PODS, REPLICA_SETS, REPLICATION_CONTROLLERS
from pilothouse.controllers.workloads.expectations import ControllerExpectations
from pilothouse.controllers.workloads.notifications import Pacing, PodNotifications
from pilothouse.controllers.workloads.owner_lookup import OwnerLookup, controlled_or_orphaned, index_by_controller
from pilothouse.controllers.workloads.pod_control import PodControl
from pilothouse.controllers.workloads.ref_manager import CannotAdopt, ControllerRefManager
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kinds.owners import is_controlled_by
from pilothouse.kinds.pods import is_active, is_terminating, next_availability
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import Conflict, NotFound
from pilothouse.machinery.names import GroupVersionResource
from pilothouse.machinery.objects import Json, labels_of, metadata, name_of, namespace_of, resource_version_of, uid_of
from pilothouse.machinery.selectors.labels import Selector, from_label_selector
from pilothouse.machinery.selectors.requirement import InvalidSelector
from pilothouse.machinery.status_error import StatusError

logger = logging.getLogger(__name__)


async def run(context: ControllerContext) -> None:
    await ReplicaSetController(context, REPLICA_SET, workers=context.config.concurrent_replicaset_syncs).run()


class ReplicaSetController:
    """Controller of replica sets, and of equivalent kinds such as replication controllers."""

    def __init__(self, context: ControllerContext, kind: ReplicatedKind, *, workers: int) -> None:
        self._context = context
        self._kind = kind
        self._workers = workers
        self._objects = context.client.for_resource(kind.resource)
        self._replica_sets, self._pods = context.informer(kind.resource), context.informer(PODS)
        for informer in (self._replica_sets, self._pods):
            index_by_controller(informer)
        self._owners = OwnerLookup(self._replica_sets, kind.kind, kind.selector_of)
        self._queue = context.queue(kind.queue, str)
        self._recorder = EventRecorder(context.client, EventSource(kind.component), clock=context.clock)
        self._pacing = Pacing(self._queue, context.clock)
        self._expectations = ControllerExpectations(context.clock)
        self._replicas = Replicas(
            PodControl(context.client, self._recorder),
            self._expectations,
            replica_sets=self._replica_sets,
            pods=self._pods,
            is_current=self._owners.is_current,
        )
        self._written: dict[str, int] = {}
        """resourceVersion of the last status write per replica set, kept until the cache has caught up."""

    async def run(self) -> None:
        notifications = Notifications(self._owners, self._queue, self._pacing, self._expectations)
        self._replica_sets.add_event_handler(notifications.of_replica_sets())
        self._pods.add_event_handler(notifications.of_pods())
        caches, clock = (self._replica_sets, self._pods), self._context.clock
        controller = Controller(
            self._kind.queue, self._sync, caches=caches, workers=self._workers, queue=self._queue, clock=clock
        )
        async with asyncio.TaskGroup() as tasks:
            for running in (controller.run(), self._recorder.run()):
                tasks.create_task(running)

    async def _sync(self, key: str) -> Requeue | None:
        replica_set = self._replica_sets.indexer.get_by_key(key)
        if replica_set is None:
            self._expectations.forget(key)
            self._pacing.forget(key)
            self._written.pop(key, None)
            return None
        if self._is_stale(key, replica_set):
            return None
        try:
            selector = self._kind.selector_of(replica_set)
        except InvalidSelector as error:
            logger.error("the selector of %s %s is invalid: %s", self._kind.kind, key, error)
            return None
        try:
            return await self._reconcile(key, replica_set, selector)
        except (Conflict, CannotAdopt) as error:
            raise TryAgain(str(error)) from error

    def _is_stale(self, key: str, replica_set: Json) -> bool:
        """Return whether the cache lacks the last status write. The pending event requeues the replica set."""
        if int(resource_version_of(replica_set)) < self._written.get(key, 0):
            return True
        self._written.pop(key, None)
        return False

    async def _reconcile(self, key: str, replica_set: Json, selector: Selector) -> Requeue | None:
        is_time = self._expectations.are_met(key)
        known = controlled_or_orphaned(self._pods, replica_set)
        pods = await self._claimed(replica_set, selector, [pod for pod in known if is_active(pod)])
        terminating: int | None = None
        if self._kind.counts_terminating:
            ending = (pod for pod in known if is_terminating(pod))
            terminating = sum(is_controlled_by(pod, replica_set) and selector.matches(labels_of(pod)) for pod in ending)
        failure: Exception | None = None
        if is_time and not is_deleting(replica_set):
            try:
                await self._replicas.manage(replica_set, pods, utc_now(self._context.clock))
            except Exception as error:  # reported in the status, then raised again
                failure = error
        now, message = utc_now(self._context.clock), None if failure is None else str(failure)
        status = calculated_status(replica_set, pods, terminating=terminating, failure=message, now=now)
        self._pacing.looked(key, len(pods))
        if not await self._write(key, replica_set, status):
            return None
        if failure is not None:
            raise failure
        # No event reports availability: requeue when the next pod reaches minReadySeconds.
        seconds = replica_set["spec"].get("minReadySeconds") or 0
        if seconds <= 0 or status.get("readyReplicas") == status.get("availableReplicas"):
            return None
        after = next_availability(pods, seconds, now)
        return Requeue(float(seconds) if after is None else after)

    async def _claimed(self, replica_set: Json, selector: Selector, pods: list[Json]) -> list[Json]:
        objects = self._objects.namespace(namespace_of(replica_set))
        claims = ControllerRefManager(
            self._context.client,
            PODS,
            replica_set,
            selector,
            read_owner=lambda: objects.get(name_of(replica_set)),
        )
        return await claims.claim(pods)

    async def _write(self, key: str, replica_set: Json, status: Json) -> bool:
        """Write the status, with one retry on the server's version; return whether the replica set still exists."""
        if is_up_to_date(replica_set, status):
            return True
        objects = self._objects.namespace(namespace_of(replica_set))
        try:
            try:
                written = await objects.update_status({**replica_set, "status": status})
            except StatusError:
                fresh = await objects.get(name_of(replica_set))
                if uid_of(fresh) != uid_of(replica_set):
                    return False
                written = await objects.update_status({**fresh, "status": status})
        except NotFound:
            return False
        self._written[key] = int(resource_version_of(written))
        return True


@dataclass(frozen=True, slots=True)
class ReplicatedKind:
    """One of the two replicated kinds: ReplicaSet, or its predecessor ReplicationController."""

    resource: GroupVersionResource
    kind: str
    component: str
    """Source component of events."""
    queue: str
    counts_terminating: bool
    """Whether the status has terminatingReplicas."""
    has_plain_selector: bool = False
    """Whether the selector is a plain label map."""

    def selector_of(self, obj: Json) -> Selector:
        """Return the selector of the object. Raises InvalidSelector."""
        selector = obj["spec"].get("selector")
        return from_label_selector({"matchLabels": selector} if self.has_plain_selector else selector)


REPLICA_SET = ReplicatedKind(REPLICA_SETS, "ReplicaSet", "replicaset-controller", "replicaset", counts_terminating=True)
REPLICATION_CONTROLLER = ReplicatedKind(
    REPLICATION_CONTROLLERS,
    "ReplicationController",
    "replication-controller",
    "replicationmanager",
    counts_terminating=False,
    has_plain_selector=True,
)


class Notifications:
    """Event handlers that enqueue the replica sets affected by a replica set or pod."""

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
