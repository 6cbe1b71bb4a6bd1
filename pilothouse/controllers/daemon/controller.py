"""daemonset-controller: keeps one pod per DaemonSet on every matching node, and replaces pods of old templates."""

from __future__ import annotations

import asyncio

from pilothouse.client.cache.handlers import Deleted, ResourceEventHandlerFuncs
from pilothouse.client.cache.keys import last_known_state, meta_namespace_key
from pilothouse.client.cache.shared_informer import SharedIndexInformer
from pilothouse.client.clock import Clock, utc_now
from pilothouse.client.controller import Controller, Requeue, TryAgain
from pilothouse.client.events.event import WARNING, EventSource
from pilothouse.client.events.recorder import EventRecorder
from pilothouse.client.wait import until
from pilothouse.client.workqueue.rate_limiting import RateLimitingQueue
from pilothouse.controllers.context import ControllerContext
from pilothouse.controllers.daemon.node_fit import NodeFits
from pilothouse.controllers.daemon.placement import DaemonPods, Plan, plan_placement
from pilothouse.controllers.daemon.update import DaemonRevisions, StaleCollisionCount, plan_update
from pilothouse.controllers.daemon.view import DaemonView, by_node, count, is_rolling, write_status
from pilothouse.controllers.resources import CONTROLLER_REVISIONS, DAEMON_SETS, NODES, PODS
from pilothouse.controllers.workloads.expectations import ControllerExpectations
from pilothouse.controllers.workloads.notifications import OwnedNotifications, Pacing, PodNotifications
from pilothouse.controllers.workloads.owner_lookup import OwnerLookup, controlled_or_orphaned, index_by_controller
from pilothouse.controllers.workloads.pod_control import CONTROLLER_REVISION_HASH, PodControl
from pilothouse.controllers.workloads.ref_manager import CannotAdopt, ControllerRefManager
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kinds.nodes import taints_of
from pilothouse.kinds.owners import controller_of
from pilothouse.kinds.pods import node_name
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersionResource
from pilothouse.machinery.objects import Json, labels_of, name_of, namespace_of, number, part, uid_of
from pilothouse.machinery.selectors.labels import from_label_selector
from pilothouse.machinery.status_error import StatusError

_FORGETTING_PERIOD = 60.0
_KIND = "DaemonSet"
_ON_NODE = "daemonPodsOnNode"
"""Index of pods by DaemonSet uid and node."""
_SKEW = 1.0
"""Seconds added to minReadySeconds, to tolerate clock skew."""
_FIRST, _LONGEST = 1.0, 15 * 60.0
_FORGOTTEN_AFTER = 2 * _LONGEST


async def run(context: ControllerContext) -> None:
    await _DaemonSetController(context).run()


class _DaemonSetController:
    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._sets, self._pods = context.informer(DAEMON_SETS), context.informer(PODS)
        self._nodes, self._revisions = context.informer(NODES), context.informer(CONTROLLER_REVISIONS)
        self._queue = context.queue("daemonset", str)
        self._pacing = Pacing(self._queue, context.clock)
        self._fits = NodeFits()
        self._backoff = FailedPodsBackoff(context.clock)
        self._expectations = ControllerExpectations(context.clock)
        self._recorder = EventRecorder(context.client, EventSource("daemonset-controller"), clock=context.clock)
        self._control = DaemonPods(PodControl(context.client, self._recorder), self._expectations)
        for informer in (self._pods, self._revisions):
            index_by_controller(informer)

    async def run(self) -> None:
        Notifications(self._queue, self._pacing, self._expectations, self._fits).follow(
            sets=self._sets, pods=self._pods, nodes=self._nodes, revisions=self._revisions
        )
        controller = Controller(
            "daemonset",
            self._sync,
            caches=(self._pods, self._nodes, self._revisions, self._sets),
            workers=self._context.config.concurrent_daemonset_syncs,
            queue=self._queue,
            clock=self._context.clock,
        )
        forgetting = until(self._backoff.forget_old, _FORGETTING_PERIOD, clock=self._context.clock)
        async with asyncio.TaskGroup() as tasks:
            for running in (controller.run(), self._recorder.run(), forgetting):
                tasks.create_task(running)

    async def _sync(self, key: str) -> Requeue | None:
        daemon_set = self._sets.indexer.get_by_key(key)
        if daemon_set is None:
            self._expectations.forget(key)
            return None
        if daemon_set["spec"].get("selector") == {}:
            message = "This daemon set is selecting all pods. A non-empty selector is required."
            self._recorder.event(daemon_set, WARNING, "SelectingAll", message)
            return None
        if is_deleting(daemon_set):
            return None  # revisions may be deleted before pods, so updated pods could no longer be identified
        try:
            return await self._update(daemon_set, key)
        except (CannotAdopt, StaleCollisionCount) as error:
            raise TryAgain(str(error)) from error

    async def _update(self, daemon_set: Json, key: str) -> Requeue | None:
        is_ready = self._expectations.are_met(key)  # before pods are read, so that the pods include everything expected
        revisions, pods = DaemonRevisions(self._context.client, daemon_set), await self._claimed(PODS, daemon_set)
        known = await self._claimed(CONTROLLER_REVISIONS, daemon_set)
        self._pacing.looked(key, max(len(pods), len(self._nodes.indexer)))
        current, old = await revisions.current_and_old(known, pods)
        view, failure = self._view(daemon_set, current, pods), None
        if is_ready:
            try:
                view = await self._act(view, current)
                await revisions.forget(old, pods)
            except StatusError as error:
                failure = error
        counts = count(view)
        await write_status(self._context.client, daemon_set, counts, is_observed=is_ready)
        if failure is not None:
            raise failure
        # No event reports availability: requeue while ready pods wait for minReadySeconds.
        waits = view.min_ready_seconds and counts["numberReady"] != counts["numberAvailable"]
        return Requeue(view.min_ready_seconds) if waits else None

    async def _act(self, view: DaemonView, current: Json) -> DaemonView:
        """Create and delete pods; return the updated view. Raises StatusError."""
        daemon_set, key = view.daemon_set, meta_namespace_key(view.daemon_set)
        plan = plan_placement(view, lambda node: self._may_replace(daemon_set, node))
        for event in plan.events:
            self._recorder.event(daemon_set, *event)
        has_acted = await self._carry_out(plan, view)
        if is_rolling(daemon_set) and self._expectations.are_met(key):
            view = await self._refreshed(view, current) if has_acted else view
            has_acted = await self._carry_out(plan_update(view), view)
        return await self._refreshed(view, current) if has_acted else view

    async def _carry_out(self, plan: Plan, view: DaemonView) -> bool:
        """Execute the plan; return whether it was non-empty. Raises StatusError."""
        await self._control.carry_out(plan, view.daemon_set, view.digest)
        return bool(plan.nodes or plan.pods)

    async def _refreshed(self, view: DaemonView, current: Json) -> DaemonView:
        return self._view(view.daemon_set, current, await self._claimed(PODS, view.daemon_set))

    def _view(self, daemon_set: Json, current: Json, pods: list[Json]) -> DaemonView:
        fit = self._fits.of(daemon_set)
        return DaemonView(
            daemon_set,
            digest=(current["metadata"].get("labels") or {}).get(CONTROLLER_REVISION_HASH) or "",
            fits={name_of(node): fit.of(node) for node in self._nodes.indexer.list()},
            pods=by_node(pods),
            now=utc_now(self._context.clock),
        )

    def _may_replace(self, daemon_set: Json, node: str) -> bool:
        """Return whether a failed pod may be deleted now; otherwise requeue the DaemonSet after the back-off."""
        observed = number(daemon_set, "status", "observedGeneration")
        key = f"{uid_of(daemon_set)}/{observed}/{node}"
        if (seconds := self._backoff.seconds_to_wait(key)) is not None:
            self._queue.add_after(meta_namespace_key(daemon_set), seconds)
            return False
        self._backoff.begin(key)
        return True

    async def _claimed(self, resource: GroupVersionResource, daemon_set: Json) -> list[Json]:
        """Return the DaemonSet's pods or revisions after adoption and release. Raises CannotAdopt or StatusError."""
        client, informer = self._context.client, self._pods if resource == PODS else self._revisions
        sets = client.for_resource(DAEMON_SETS, namespace=namespace_of(daemon_set))
        selector = from_label_selector(daemon_set["spec"].get("selector"))
        refs = ControllerRefManager(
            client, resource, daemon_set, selector, read_owner=lambda: sets.get(name_of(daemon_set))
        )
        return await refs.claim(controlled_or_orphaned(informer, daemon_set))


class Notifications:
    """Event handlers that enqueue the DaemonSets affected by a DaemonSet, pod, revision or node."""

    def __init__(
        self, queue: RateLimitingQueue[str], pacing: Pacing, expectations: ControllerExpectations, fits: NodeFits
    ) -> None:
        self._queue = queue
        self._pacing = pacing
        self._expectations = expectations
        self._fits = fits

    def follow(
        self,
        *,
        sets: SharedIndexInformer,
        pods: SharedIndexInformer,
        nodes: SharedIndexInformer,
        revisions: SharedIndexInformer,
    ) -> None:
        """Add handlers to the informers."""
        self._sets, self._pods, owners = sets, pods, OwnerLookup(sets, _KIND)
        if _ON_NODE not in pods.indexer.indexers:
            pods.add_indexers({_ON_NODE: _on_node})
        sets.add_event_handler(
            ResourceEventHandlerFuncs(add=self._enqueue, update=self._set_updated, delete=self._set_deleted)
        )
        of_pods = PodNotifications(owners, self._queue, self._pacing, expectations=self._expectations, skew=_SKEW)
        pods.add_event_handler(of_pods.handlers())
        revisions.add_event_handler(_RevisionNotifications(owners, self._pacing.add).handlers())
        nodes.add_event_handler(ResourceEventHandlerFuncs(add=self._node_changed, update=self._node_updated))

    def _enqueue(self, daemon_set: Json) -> None:
        self._pacing.add(meta_namespace_key(daemon_set))

    def _set_updated(self, old: Json, new: Json) -> None:
        if uid_of(old) != uid_of(new):
            self._set_deleted(old)
        self._enqueue(new)

    def _set_deleted(self, deleted: Deleted) -> None:
        if (last := last_known_state(deleted)) is not None:
            self._expectations.forget(meta_namespace_key(last))
            self._pacing.forget(meta_namespace_key(last))
            self._fits.forget(last)
            self._enqueue(last)

    def _node_updated(self, old: Json, new: Json) -> None:
        if labels_of(old) != labels_of(new) or taints_of(old) != taints_of(new):
            self._node_changed(new)

    def _node_changed(self, node: Json) -> None:
        """Enqueue DaemonSets with a missing pod, a pod that must go, or a misscheduled pod on the node."""
        for daemon_set in self._sets.indexer.list():
            fit = self._fits.of(daemon_set).of(node)
            if self._pods.indexer.by_index(_ON_NODE, f"{uid_of(daemon_set)}/{name_of(node)}"):
                is_concerned = not fit.may_stay or part(daemon_set, "status").get("numberMisscheduled")
            else:
                is_concerned = fit.should_run
            if is_concerned:
                self._enqueue(daemon_set)


class _RevisionNotifications(OwnedNotifications):
    def added(self, obj: Json) -> None:
        """Enqueue potential adopters of an orphaned revision; an owned revision enqueues nothing."""
        if is_deleting(obj):
            self.deleted(obj)
        elif controller_of(obj) is None:
            self.enqueue(self._owners.adopters_of(obj))


def _on_node(pod: Json) -> tuple[str, ...]:
    owner = controller_of(pod)
    if owner is None or owner.get("kind") != _KIND or not node_name(pod):
        return ()
    return (f"{owner.get('uid')}/{node_name(pod)}",)


@dataclass(slots=True)
class _Wait:
    seconds: float
    since: float


class FailedPodsBackoff:
    """Back-off for the replacement of failed pods, by key, doubling from a second to 15 minutes.

    The back-off ends create-reject loops on a node.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waits: dict[str, _Wait] = {}

    def seconds_to_wait(self, key: str) -> float | None:
        """Return the duration of the running back-off; None if no back-off is active."""
        wait, now = self._waits.get(key), self._clock.now()
        if wait is None or now - wait.since >= wait.seconds:
            return None
        return wait.seconds

    def begin(self, key: str) -> None:
        """Start a back-off twice as long as the last; 30 minutes after the last start, the duration is reset."""
        last, now = self._waits.get(key), self._clock.now()
        is_first = last is None or now - last.since > _FORGOTTEN_AFTER
        seconds = _FIRST if is_first or last is None else min(2 * last.seconds, _LONGEST)
        self._waits[key] = _Wait(seconds, now)

    def forget_old(self) -> None:
        """Drop expired back-offs."""
        now = self._clock.now()
        self._waits = {key: wait for key, wait in self._waits.items() if now - wait.since <= _FORGOTTEN_AFTER}
