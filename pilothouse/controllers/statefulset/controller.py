"""statefulset-controller: pods with stable name, network identity and storage, created in order or in parallel, and
replaced on template changes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from pilothouse.client.cache.handlers import Deleted, ResourceEventHandlerFuncs
from pilothouse.client.cache.keys import last_known_state, meta_namespace_key
from pilothouse.client.cache.shared_informer import SharedIndexInformer
from pilothouse.client.clock import Clock, utc_now
from pilothouse.client.controller import Controller, Requeue, TryAgain
from pilothouse.client.events.event import EventSource
from pilothouse.client.events.recorder import EventRecorder
from pilothouse.controllers.context import ControllerContext, with_last_state
from pilothouse.controllers.history import History
from pilothouse.controllers.resources import CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS
from pilothouse.controllers.statefulset.claim_control import ClaimsFailed, StatefulClaims
from pilothouse.controllers.statefulset.identity import is_member
from pilothouse.controllers.statefulset.pods import StatefulPods
from pilothouse.controllers.statefulset.update import StatefulSetUpdate
from pilothouse.controllers.workloads.notifications import Pacing, enqueue_when_available
from pilothouse.controllers.workloads.owner_lookup import OwnerLookup, controlled_or_orphaned, index_by_controller
from pilothouse.controllers.workloads.ref_manager import CannotAdopt, ControllerRefManager
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kinds.owners import controller_of
from pilothouse.kinds.pods import is_ready
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersionResource
from pilothouse.machinery.objects import Json, name_of, namespace_of, resource_version_of
from pilothouse.machinery.selectors.labels import Selector, from_label_selector
from pilothouse.machinery.selectors.requirement import InvalidSelector

_UNTIL_SEEN = 0.01
"""Seconds until the next sync of a StatefulSet with unobserved writes, unless an event comes first."""
_PATIENCE = 5.0
"""Seconds until the informer's own resourceVersion is trusted: a relist may deliver no event with that version."""


async def run(context: ControllerContext) -> None:
    await _StatefulSetController(context).run()


class _StatefulSetController:
    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._sets, self._pods = context.informer(STATEFUL_SETS), context.informer(PODS)
        self._claims, self._revisions = (
            context.informer(PERSISTENT_VOLUME_CLAIMS),
            context.informer(CONTROLLER_REVISIONS),
        )
        self._owners = OwnerLookup(self._sets, "StatefulSet")
        self._queue = context.queue("statefulset", str)
        self._pacing = Pacing(self._queue, context.clock)
        self._recorder = EventRecorder(context.client, EventSource("statefulset-controller"), clock=context.clock)
        watched = {STATEFUL_SETS: self._sets, PODS: self._pods, PERSISTENT_VOLUME_CLAIMS: self._claims}
        self._versions = WrittenVersions(watched, context.clock)
        claims = StatefulClaims(context.client, self._claims, self._recorder, self._wrote)
        pods = StatefulPods(context.client, claims, self._recorder, self._wrote)
        self._history = History(context.client, self._revisions)
        self._update = StatefulSetUpdate(context.client, pods, self._history, self._wrote, self._owners)
        index_by_controller(self._pods)

    async def run(self) -> None:
        self._sets.add_event_handler(_told_of_every(self._set_changed))
        self._claims.add_event_handler(
            _told_of_every(lambda claim: self._versions.saw(PERSISTENT_VOLUME_CLAIMS, claim))
        )
        self._pods.add_event_handler(
            ResourceEventHandlerFuncs(add=self._pod_added, update=self._pod_updated, delete=self._pod_deleted)
        )
        controller = Controller(
            "statefulset",
            self._sync,
            caches=(self._sets, self._pods, self._claims, self._revisions),
            workers=self._context.config.concurrent_statefulset_syncs,
            queue=self._queue,
            clock=self._context.clock,
        )
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(controller.run())
            tasks.create_task(self._recorder.run())

    def _wrote(self, stateful_set: Json, resource: GroupVersionResource, obj: Json) -> None:
        self._versions.wrote(meta_namespace_key(stateful_set), resource, obj)

    def _set_changed(self, stateful_set: Json) -> None:
        self._versions.saw(STATEFUL_SETS, stateful_set)
        self._queue.add(meta_namespace_key(stateful_set))

    def _pod_added(self, pod: Json) -> None:
        self._versions.saw(PODS, pod)
        for owner in self._owners.concerned_by_addition(pod):
            self._pacing.add(meta_namespace_key(owner))

    def _pod_deleted(self, deleted: Deleted) -> None:
        if (pod := last_known_state(deleted)) is None:
            return
        self._versions.saw(PODS, pod)
        if (owner := self._owners.owner_of(pod)) is not None:
            self._pacing.add(meta_namespace_key(owner))

    def _pod_updated(self, old: Json, new: Json) -> None:
        if resource_version_of(old) == resource_version_of(new):
            return
        self._versions.saw(PODS, new)
        concerned = self._owners.concerned_by_change(old, new)
        for owner in concerned:
            self._pacing.add(meta_namespace_key(owner))
        if is_ready(new) and not is_ready(old):
            enqueue_when_available(concerned, self._queue)

    async def _sync(self, key: str) -> Requeue | None:
        try:
            return await self._reconcile(key)
        except (ClaimsFailed, CannotAdopt) as error:
            raise TryAgain(str(error)) from error

    async def _reconcile(self, key: str) -> Requeue | None:
        stateful_set = self._sets.indexer.get_by_key(key)
        if stateful_set is None:
            self._versions.forget(key)
            self._pacing.forget(key)
            return None
        if not self._versions.are_seen(key):
            return Requeue(_UNTIL_SEEN)
        try:
            selector = from_label_selector(stateful_set["spec"].get("selector"))
        except InvalidSelector:
            return None
        # Adopt orphaned revisions.
        revisions = self._history.of(stateful_set, selector)
        orphans = [revision for revision in revisions if controller_of(revision) is None]
        if orphans and not is_deleting(stateful_set):
            refs = self._refs(CONTROLLER_REVISIONS, stateful_set, selector)
            for revision in orphans:
                await refs.adopt(revision)
        known, refs = controlled_or_orphaned(self._pods, stateful_set), self._refs(PODS, stateful_set, selector)
        pods = await refs.claim(known, lambda pod: is_member(stateful_set, pod))
        self._pacing.looked(key, len(pods))
        now = utc_now(self._context.clock)
        return await self._update.run(stateful_set, self._history.of(stateful_set, selector), pods, now)

    def _refs(self, resource: GroupVersionResource, stateful_set: Json, selector: Selector) -> ControllerRefManager:
        sets = self._context.client.for_resource(STATEFUL_SETS, namespace=namespace_of(stateful_set))

        def wrote(obj: Json) -> None:
            if resource == PODS:
                self._wrote(stateful_set, PODS, obj)

        return ControllerRefManager(
            self._context.client,
            resource,
            stateful_set,
            selector,
            read_owner=lambda: sets.get(name_of(stateful_set)),
            on_write=wrote,
        )


def _told_of_every(changed: Callable[[Json], None]) -> ResourceEventHandlerFuncs:
    """Return a handler that calls `changed` for adds, updates and deletes alike."""
    return ResourceEventHandlerFuncs(add=changed, update=lambda old, new: changed(new), delete=with_last_state(changed))


@dataclass(slots=True)
class _Written:
    at: float
    versions: dict[GroupVersionResource, int]


class WrittenVersions:
    """Protection against syncs on a cache older than the controller's own writes.

    A controller with a stale cache would repeat its writes. The controller records the resourceVersion of each write,
    informer handlers record the versions seen, and in between the StatefulSet is not synced.

        versions.wrote("default/web", PODS, created)
        versions.are_seen("default/web")          # False
        versions.saw(PODS, pod)                   # by the informer's handler
        versions.are_seen("default/web")          # True
    """

    def __init__(self, informers: Mapping[GroupVersionResource, SharedIndexInformer], clock: Clock) -> None:
        self._informers = informers
        self._clock = clock
        self._seen = dict.fromkeys(informers, 0)
        self._written: dict[str, _Written] = {}

    def wrote(self, key: str, resource: GroupVersionResource, obj: Json) -> None:
        version = _version(obj)
        if version <= self._seen[resource]:
            return
        written = self._written.setdefault(key, _Written(self._clock.now(), {}))
        written.versions[resource] = max(version, written.versions.get(resource, 0))

    def saw(self, resource: GroupVersionResource, obj: Json) -> None:
        """Record a seen version. Must be called before the handler processes the event."""
        version = _version(obj)
        if version > self._seen[resource]:
            self._seen[resource] = version

    def are_seen(self, key: str) -> bool:
        """Return whether the caches include every write for the owner."""
        written = self._written.get(key)
        if written is None:
            return True
        is_late = self._clock.now() - written.at > _PATIENCE
        if not all(self._reached(resource, is_late) >= version for resource, version in written.versions.items()):
            return False
        self.forget(key)
        return True

    def forget(self, key: str) -> None:
        self._written.pop(key, None)

    def _reached(self, resource: GroupVersionResource, is_late: bool) -> int:
        if not is_late:
            return self._seen[resource]
        return max(self._seen[resource], int(self._informers[resource].last_sync_resource_version or 0))


def _version(obj: Json) -> int:
    version = resource_version_of(obj)
    return int(version) if version.isdigit() else 0
