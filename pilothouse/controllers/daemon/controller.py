"""daemonset-controller: keeps one pod per DaemonSet on every matching node, and replaces pods of old templates."""

from __future__ import annotations

import asyncio

from pilothouse.client.cache.keys import meta_namespace_key
from pilothouse.client.clock import utc_now
from pilothouse.client.controller import Controller, Requeue, TryAgain
from pilothouse.client.events.event import WARNING, EventSource
from pilothouse.client.events.recorder import EventRecorder
from pilothouse.client.wait import until
from pilothouse.controllers.context import ControllerContext
from pilothouse.controllers.daemon.failed_pods import FailedPodsBackoff
from pilothouse.controllers.daemon.node_fit import NodeFits
from pilothouse.controllers.daemon.notifications import Notifications
from pilothouse.controllers.daemon.placement import Plan, plan_placement
from pilothouse.controllers.daemon.pods import DaemonPods
from pilothouse.controllers.daemon.revisions import DaemonRevisions, StaleCollisionCount
from pilothouse.controllers.daemon.rolling_update import plan_update
from pilothouse.controllers.daemon.status import count, write_status
from pilothouse.controllers.daemon.strategy import is_rolling
from pilothouse.controllers.daemon.view import DaemonView, by_node
from pilothouse.controllers.resources import CONTROLLER_REVISIONS, DAEMON_SETS, NODES, PODS
from pilothouse.controllers.workloads.controller_index import controlled_or_orphaned, index_by_controller
from pilothouse.controllers.workloads.expectations import ControllerExpectations
from pilothouse.controllers.workloads.pacing import Pacing
from pilothouse.controllers.workloads.pod_control import PodControl
from pilothouse.controllers.workloads.ref_manager import CannotAdopt, ControllerRefManager
from pilothouse.controllers.workloads.template_hash import CONTROLLER_REVISION_HASH
from pilothouse.kinds.deletion import is_deleting
from pilothouse.machinery.names import GroupVersionResource
from pilothouse.machinery.objects import Json, name_of, namespace_of, number, uid_of
from pilothouse.machinery.selectors.labels import from_label_selector
from pilothouse.machinery.status_error import StatusError

_FORGETTING_PERIOD = 60.0


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
            told = "This daemon set is selecting all pods. A non-empty selector is required."
            self._recorder.event(daemon_set, WARNING, "SelectingAll", told)
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
        return _next_check(view, counts)

    async def _act(self, view: DaemonView, current: Json) -> DaemonView:
        """Create and delete pods; return the updated view. Raises StatusError."""
        daemon_set, key = view.daemon_set, meta_namespace_key(view.daemon_set)
        plan = plan_placement(view, lambda node: self._may_replace(daemon_set, node))
        for event in plan.told:
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


def _next_check(view: DaemonView, counts: dict[str, int]) -> Requeue | None:
    """Requeue while ready pods wait for minReadySeconds: no event reports availability."""
    waits = view.min_ready_seconds and counts["numberReady"] != counts["numberAvailable"]
    return Requeue(view.min_ready_seconds) if waits else None
