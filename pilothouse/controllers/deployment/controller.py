"""deployment-controller: rollouts, scaling and revision history of deployments."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import datetime

from pilothouse.client.cache.handlers import Deleted, ResourceEventHandlerFuncs
from pilothouse.client.cache.keys import last_known_state, meta_namespace_key
from pilothouse.client.cache.shared_informer import SharedIndexInformer
from pilothouse.client.controller import Controller, Requeue, TryAgain, enqueue_keys
from pilothouse.client.events.event import EventSource
from pilothouse.client.events.recorder import EventRecorder
from pilothouse.client.workqueue.rate_limiting import RateLimitingQueue
from pilothouse.controllers.context import ControllerContext
from pilothouse.controllers.deployment import rollouts
from pilothouse.controllers.deployment.new_replica_set import Actions, bring_up_to_date, working_copy
from pilothouse.controllers.deployment.replica_sets import RECREATE, sorted_out, strategy_of
from pilothouse.controllers.deployment.status import (
    DEADLINE_EXCEEDED,
    PAUSED,
    PROGRESSING,
    RESUMED,
    calculated_status,
    new_condition,
    progress_deadline,
    rollout_status,
    seconds_until_check,
    set_condition,
)
from pilothouse.controllers.namespace_state import is_refusal_of_terminating_namespace
from pilothouse.controllers.resources import DEPLOYMENTS, PODS, REPLICA_SETS
from pilothouse.controllers.workloads import owner_lookup
from pilothouse.controllers.workloads.notifications import OwnedNotifications
from pilothouse.controllers.workloads.ref_manager import CannotAdopt, ControllerRefManager
from pilothouse.kinds.conditions import find_in
from pilothouse.kinds.deletion import is_deleting
from pilothouse.machinery.errors import AlreadyExists, Conflict, NotFound
from pilothouse.machinery.objects import Json, metadata, resource_version_of, uid_of
from pilothouse.machinery.selectors.labels import from_label_selector
from pilothouse.machinery.status_error import StatusError

_MAX_RETRIES = 15
_SELECTING_ALL = "This deployment is selecting all pods. A non-empty selector is required."


async def run(context: ControllerContext) -> None:
    await DeploymentController(context).run()


class DeploymentController:
    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._deployments, self._replica_sets = context.informer(DEPLOYMENTS), context.informer(REPLICA_SETS)
        self._pods = context.informer(PODS)
        for informer in (self._replica_sets, self._pods):
            owner_lookup.index_by_controller(informer)
        self._queue = context.queue("deployment", str)
        self._recorder = EventRecorder(context.client, EventSource("deployment-controller"), clock=context.clock)
        self._actions = Actions(context.client, self._recorder, context.clock)
        self._written: dict[str, int] = {}
        """resourceVersion of the last write per deployment, kept until the cache has caught up."""

    async def run(self) -> None:
        caches = (self._deployments, self._replica_sets, self._pods)
        notifications = Notifications(
            self._queue, deployments=self._deployments, replica_sets=self._replica_sets, pods=self._pods
        )
        self._deployments.add_event_handler(notifications.of_deployments())
        self._replica_sets.add_event_handler(notifications.of_replica_sets())
        self._pods.add_event_handler(notifications.of_pods())
        controller = Controller(
            "deployment",
            self._sync,
            caches=caches,
            workers=self._context.config.concurrent_deployment_syncs,
            queue=self._queue,
            max_retries=_MAX_RETRIES,
            clock=self._context.clock,
        )
        async with asyncio.TaskGroup() as tasks:
            for running in (controller.run(), self._recorder.run()):
                tasks.create_task(running)

    async def _sync(self, key: str) -> Requeue | None:
        cached = self._deployments.indexer.get_by_key(key)
        if cached is None:
            self._written.pop(key, None)
            return None
        if int(resource_version_of(cached)) < self._written.pop(key, 0):
            # A sync on the stale deployment would end in a conflict; the pending event requeues the deployment.
            return None
        deployment = working_copy(cached)
        try:
            return await self._reconcile(key, deployment)
        except (AlreadyExists, CannotAdopt, Conflict) as error:
            raise TryAgain(str(error)) from error
        except NotFound:
            # The deployment or a replica set was deleted meanwhile; the delete event requeues the deployment.
            return None
        except StatusError as error:
            if is_refusal_of_terminating_namespace(error):
                return None
            raise
        finally:
            if resource_version_of(deployment) != resource_version_of(cached):
                self._written[key] = int(resource_version_of(deployment))

    async def _reconcile(self, key: str, deployment: Json) -> Requeue | None:
        if deployment["spec"].get("selector") == {}:
            self._actions.warn(deployment, "SelectingAll", _SELECTING_ALL)
            status, generation = deployment["status"], metadata(deployment).get("generation") or 0
            if (status.get("observedGeneration") or 0) < generation:
                status["observedGeneration"] = generation
                await self._actions.write_status(deployment)
            return None
        claims = ControllerRefManager(
            self._context.client,
            REPLICA_SETS,
            deployment,
            from_label_selector(deployment["spec"]["selector"]),
            read_owner=lambda: self._actions.read(deployment),
        )
        sets = sorted_out(
            deployment, await claims.claim(owner_lookup.controlled_or_orphaned(self._replica_sets, deployment))
        )
        if is_deleting(deployment):
            await bring_up_to_date(self._actions, deployment, sets)
            await self._write_status(deployment, calculated_status(deployment, sets, self._now))
            return None
        # Record a pause or resume. Resuming restarts the progress deadline; an exceeded deadline stays recorded.
        reason = (find_in(deployment["status"], PROGRESSING) or {}).get("reason")
        is_paused, was_paused = bool(deployment["spec"].get("paused")), reason == PAUSED
        if progress_deadline(deployment) is not None and reason != DEADLINE_EXCEEDED and is_paused != was_paused:
            reason_and_message = (PAUSED, "Deployment is paused") if is_paused else (RESUMED, "Deployment is resumed")
            set_condition(deployment["status"], new_condition(PROGRESSING, "Unknown", *reason_and_message, self._now))
            await self._actions.write_status(deployment)
        await bring_up_to_date(self._actions, deployment, sets)
        revision = rollouts.rollback_revision(deployment)
        if deployment["spec"].get("paused") or (revision is None and rollouts.is_resized(deployment, sets)):
            await rollouts.scale(self._actions, deployment, sets)
            if deployment["spec"].get("paused") and rollouts.rollback_revision(deployment) is None:
                await rollouts.clean_up(self._actions, deployment, sets.old)
            await self._write_status(deployment, calculated_status(deployment, sets, self._now))
        elif revision is not None:
            await rollouts.roll_back(self._actions, deployment, sets, revision)
        else:
            if strategy_of(deployment) == RECREATE:
                await rollouts.recreate(self._actions, deployment, sets, self._pods_of)
            else:
                await rollouts.roll(self._actions, deployment, sets)
            status = rollout_status(deployment, sets, self._now)
            if await self._write_status(deployment, status):
                return None
            # Check an idle rollout again just after its progress deadline.
            seconds = seconds_until_check(deployment, status, self._now)
            if seconds is None:
                return None
            if seconds < 1.0:
                self._queue.add_rate_limited(key)
                return None
            return Requeue(seconds + 1.0)
        return None

    async def _write_status(self, deployment: Json, status: Json) -> bool:
        """Write the status if changed; return whether it was written."""
        if status == deployment["status"]:
            return False
        deployment["status"] = status
        await self._actions.write_status(deployment)
        return True

    def _pods_of(self, replica_set: Json) -> Sequence[Json]:
        return self._pods.indexer.by_index(owner_lookup.CONTROLLER_UID_INDEX, uid_of(replica_set))

    @property
    def _now(self) -> datetime:
        return self._actions.now


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
        self._deployments = owner_lookup.OwnerLookup(deployments, "Deployment")
        self._owners_of_pods = owner_lookup.OwnerLookup(replica_sets, "ReplicaSet")
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
        for replica_set in self._replica_sets.indexer.by_index(owner_lookup.CONTROLLER_UID_INDEX, uid_of(deployment)):
            yield from self._pods.indexer.by_index(owner_lookup.CONTROLLER_UID_INDEX, uid_of(replica_set))
