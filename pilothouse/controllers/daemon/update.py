"""Rolling update of a DaemonSet: revisions of its template, and the old pods to replace next.

The plan stays within maxSurge and maxUnavailable. Placement runs first: it leaves at most one pod per node (during a
surge, one old and one new) and creates missing pods. Terminating pods do not count, so that an update proceeds while
nodes are down.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pilothouse.client.rest.client import Client
from pilothouse.controllers.daemon.node_fit import Fit
from pilothouse.controllers.daemon.placement import Plan
from pilothouse.controllers.daemon.view import DaemonView, max_surge, max_unavailable
from pilothouse.controllers.history import holds_template_of, named_revision, number_of
from pilothouse.controllers.resources import CONTROLLER_REVISIONS, DAEMON_SETS, PODS
from pilothouse.controllers.workloads.pod_control import CONTROLLER_REVISION_HASH, template_hash
from pilothouse.kinds.deletion import is_deleting
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import AlreadyExists
from pilothouse.machinery.objects import Json, labels_of, metadata, name_of, namespace_of, part
from pilothouse.machinery.status_error import PilothouseError

_NOWHERE = Fit(should_run=False, may_stay=False)


@dataclass(frozen=True, slots=True)
class _Pair:
    """New and old pod of a node; `confused` if there are several of either."""

    new: Json | None = None
    old: Json | None = None
    is_confused: bool = False


def plan_update(view: DaemonView) -> Plan:
    """Return the nodes that get a new pod and the old pods to delete."""
    if all(view.is_updated(pod) for pods in view.pods.values() for pod in pods):
        return Plan()
    surge = max_surge(view.daemon_set, view.desired)
    return _surging(view, surge) if surge else _replacing(view, max_unavailable(view.daemon_set, view.desired))


def _pairs(view: DaemonView) -> dict[str, _Pair]:
    """Return the pairs of all nodes with pods and all eligible nodes."""
    wanted = {node: () for node, fit in view.fits.items() if fit.should_run}
    return {node: _pair(view, pods) for node, pods in {**wanted, **view.pods}.items()}


def _pair(view: DaemonView, pods: Sequence[Json]) -> _Pair:
    new: list[Json] = []
    old: list[Json] = []
    for pod in pods:
        if not is_deleting(pod):
            (new if view.is_updated(pod) else old).append(pod)
    if len(new) > 1 or len(old) > 1:
        return _Pair(is_confused=True)
    return _Pair(new[0] if new else None, old[0] if old else None)


def _replacing(view: DaemonView, most: int) -> Plan:
    """Delete old pods: unavailable pods at once, available pods up to maxUnavailable."""
    unavailable, broken, candidates = 0, [], []
    for pair in _pairs(view).values():
        if pair.is_confused or (pair.new is None) is (pair.old is None):
            unavailable += 1
        elif pair.old is None:
            unavailable += not view.is_available(pair.new or {})
        elif not view.is_available(pair.old):
            broken.append(pair.old)
            unavailable += 1
        else:
            candidates.append(pair.old)
    return Plan(pods=broken + candidates[: max(0, most - unavailable)])


def _surging(view: DaemonView, most: int) -> Plan:
    """Create new pods beside old pods; old pods are deleted once the new ones are available."""
    surging, available = 0, 0
    done: list[Json] = []
    unwanted: list[Json] = []
    needed: list[str] = []
    candidates: list[str] = []
    for node, pair in _pairs(view).items():
        if pair.is_confused:
            surging += 1
            continue
        is_served = view.is_available(pair.old or pair.new or {})
        available += is_served
        if pair.old is None:
            continue
        if pair.new is not None:
            if view.is_available(pair.new):
                done.append(pair.old)
            else:
                surging += 1
        elif view.fits.get(node, _NOWHERE).should_run:
            (candidates if is_served else needed).append(node)
        else:
            (unwanted if is_served else done).append(pair.old)
    # A node that no longer matches keeps its pod until another node has an available one.
    spare = max(0, available - view.desired)
    return Plan(nodes=needed + candidates[: max(0, most - surging)], pods=done + unwanted[:spare])


class StaleCollisionCount(PilothouseError):
    """The cached collisionCount is stale, so the revision hash is too."""


class DaemonRevisions:
    """Writes the revisions of one DaemonSet. Every method raises StatusError."""

    def __init__(self, client: Client, daemon_set: Json) -> None:
        namespace = namespace_of(daemon_set)
        self._revisions = client.for_resource(CONTROLLER_REVISIONS, namespace=namespace)
        self._sets = client.for_resource(DAEMON_SETS, namespace=namespace)
        self._pods = client.for_resource(PODS, namespace=namespace)
        self._daemon_set = daemon_set

    async def current_and_old(self, known: Iterable[Json], pods: Sequence[Json]) -> tuple[Json, list[Json]]:
        """Return the current revision, created if missing, and all other revisions.

        The current revision gets the highest number. Duplicates are merged, and pods are relabelled with the remaining
        hash. Raises StaleCollisionCount.
        """
        labelled = [await self._labelled(revision) for revision in known]
        current = [revision for revision in labelled if holds_template_of(revision, self._daemon_set)]
        old = [revision for revision in labelled if not holds_template_of(revision, self._daemon_set)]
        number = max(map(number_of, old), default=0) + 1
        if not current:
            return await self._create(number), old
        kept = await self._without_duplicates(current, pods)
        if number_of(kept) < number:
            await self._revisions.update({**kept, "revision": number})
        return kept, old

    async def forget(self, old: Sequence[Json], pods: Iterable[Json]) -> None:
        """Delete the oldest revisions without pods beyond revisionHistoryLimit."""
        limit = self._daemon_set["spec"].get("revisionHistoryLimit")
        surplus = len(old) - (10 if limit is None else limit)
        if surplus <= 0:
            return
        live = {_digest(pod) for pod in pods}
        dead = [
            revision
            for revision in sorted(old, key=number_of)
            if not _digest(revision) or _digest(revision) not in live
        ]
        for revision in dead[:surplus]:
            await self._revisions.delete(name_of(revision))

    async def _labelled(self, revision: Json) -> Json:
        """Return the revision with a hash label; the default hash is its name."""
        if CONTROLLER_REVISION_HASH in labels_of(revision):
            return revision
        labels = {**labels_of(revision), CONTROLLER_REVISION_HASH: name_of(revision)}
        return await self._revisions.update({**revision, "metadata": {**metadata(revision), "labels": labels}})

    async def _without_duplicates(self, current: Sequence[Json], pods: Sequence[Json]) -> Json:
        kept = max(reversed(current), key=number_of)
        if len(current) == 1:
            return kept
        labels = {CONTROLLER_REVISION_HASH: _digest(kept)}
        for pod in pods:
            if _digest(pod) != _digest(kept):
                await self._pods.patch(name_of(pod), {"metadata": {"labels": labels}})
        for revision in current:
            if revision is not kept:
                await self._revisions.delete(name_of(revision))
        return kept

    async def _create(self, number: int) -> Json:
        collisions = part(self._daemon_set, "status").get("collisionCount")
        digest = template_hash(self._daemon_set["spec"]["template"], collisions)
        name = f"{name_of(self._daemon_set)}-{digest}"
        new = named_revision(self._daemon_set, number, name, {CONTROLLER_REVISION_HASH: digest})
        try:
            return await self._revisions.create(new)
        except AlreadyExists:
            existing = await self._revisions.get(name_of(new))
            if holds_template_of(existing, self._daemon_set):
                return existing
            await self._count_collision()
            raise

    async def _count_collision(self) -> None:
        """Increment collisionCount, which changes the next hash. Raises StaleCollisionCount."""
        fresh = await self._sets.get(name_of(self._daemon_set))
        status, believed = fresh.get("status") or {}, part(self._daemon_set, "status").get("collisionCount")
        if (known := status.get("collisionCount")) != believed:
            message = f"found a stale collision count ({believed}, expected {known}) of DaemonSet"
            raise StaleCollisionCount(f'{message} "{name_of(fresh)}" while processing; will retry until it is updated')
        await self._sets.update_status({**fresh, "status": {**status, "collisionCount": (known or 0) + 1}})


def _digest(obj: Json) -> str:
    return labels_of(obj).get(CONTROLLER_REVISION_HASH) or ""
