"""Pods of a replica set: creation and deletion until the desired size is reached, and the resulting status."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

from pilothouse.client.cache.keys import meta_namespace_key
from pilothouse.client.cache.shared_informer import SharedIndexInformer
from pilothouse.controllers.namespace_state import is_refusal_of_terminating_namespace
from pilothouse.controllers.workloads.expectations import ControllerExpectations
from pilothouse.controllers.workloads.owner_lookup import CONTROLLER_UID_INDEX
from pilothouse.controllers.workloads.pod_control import PodControl, SlowStartError, few_at_once, slow_start
from pilothouse.controllers.workloads.pod_ranking import sorted_for_deletion
from pilothouse.kinds.conditions import without_condition
from pilothouse.kinds.owners import controller_of
from pilothouse.kinds.pods import is_active, is_available, is_ready, node_name
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json, labels_of, metadata, name_of, uid_of
from pilothouse.machinery.status_error import StatusError
from pilothouse.machinery.times import format_time

BURST = 500
"""Maximum pods created or deleted per sync, before their events are awaited."""
REPLICA_FAILURE = "ReplicaFailure"
_COUNTS = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")


class Replicas:
    """Manages the pods of replica sets. Both informers must be indexed by controller."""

    def __init__(
        self,
        pod_control: PodControl,
        expectations: ControllerExpectations,
        *,
        replica_sets: SharedIndexInformer,
        pods: SharedIndexInformer,
        is_current: Callable[[Json], bool],
    ) -> None:
        """`is_current` returns whether the cache still has the replica set with this spec."""
        self._control = pod_control
        self._expectations = expectations
        self._replica_sets = replica_sets
        self._pods = pods
        self._is_current = is_current

    async def manage(self, replica_set: Json, pods: Sequence[Json], now: datetime) -> None:
        """Create or delete pods up to the desired size. Raises the first error."""
        missing = replica_set["spec"]["replicas"] - len(pods)
        if missing > 0:
            await self._create(replica_set, min(missing, BURST))
        elif missing < 0:
            await self._delete(replica_set, self._to_delete(replica_set, pods, min(-missing, BURST), now))

    async def _create(self, replica_set: Json, count: int) -> None:
        key = meta_namespace_key(replica_set)
        self._expectations.expect_creations(key, count)
        try:
            goes_on = partial(self._is_current, replica_set)
            created = await slow_start(count, lambda: self._create_one(replica_set), goes_on=goes_on)
            self._expectations.creation_observed(key, count - created)
        except SlowStartError as failed:
            self._expectations.creation_observed(key, count - failed.succeeded)
            raise failed.error from None

    async def _create_one(self, replica_set: Json) -> None:
        """Create a pod; a rejection by a terminating namespace is ignored."""
        try:
            await self._control.create(replica_set["spec"]["template"], replica_set)
        except StatusError as error:
            if not is_refusal_of_terminating_namespace(error):
                raise

    async def _delete(self, replica_set: Json, pods: Sequence[Json]) -> None:
        self._expectations.expect_deletions(meta_namespace_key(replica_set), map(uid_of, pods))
        results = await few_at_once([partial(self._delete_one, replica_set, pod) for pod in pods])
        if error := next((result for result in results if result is not None), None):
            raise error

    async def _delete_one(self, replica_set: Json, pod: Json) -> None:
        try:
            await self._control.delete(name_of(pod), replica_set)
        except StatusError as error:
            self._expectations.deletion_observed(meta_namespace_key(replica_set), uid_of(pod))
            if not isinstance(error, NotFound):
                raise

    def _to_delete(self, replica_set: Json, pods: Sequence[Json], count: int, now: datetime) -> Sequence[Json]:
        if count == len(pods):
            return pods
        return sorted_for_deletion(pods, now, self._company(replica_set, pods))[:count]

    def _company(self, replica_set: Json, pods: Sequence[Json]) -> dict[str, int]:
        """Return, by pod uid, the number of active pods on its node from replica sets with the same owner."""
        owner = controller_of(replica_set)
        if owner is None:
            return {}
        siblings = self._replica_sets.indexer.by_index(CONTROLLER_UID_INDEX, owner["uid"])
        related = (
            pod for sibling in siblings for pod in self._pods.indexer.by_index(CONTROLLER_UID_INDEX, uid_of(sibling))
        )
        on_node = Counter(node_name(pod) for pod in related if is_active(pod))
        return {uid_of(pod): on_node[node_name(pod)] for pod in pods}


def calculated_status(
    replica_set: Json, pods: Sequence[Json], *, terminating: int | None, failure: str | None, now: datetime
) -> Json:
    """Return the status. `pods` are the active pods; `failure` is the error that prevented the desired size."""
    old = replica_set.get("status") or {}
    status: Json = {"replicas": len(pods)}
    status |= {name: count for name, count in _counts(replica_set, pods, now).items() if count}
    if terminating is not None:
        status["terminatingReplicas"] = terminating
    if generation := metadata(replica_set).get("generation"):
        status["observedGeneration"] = generation
    if conditions := _conditions(replica_set, old.get("conditions") or [], len(pods), failure, now):
        status["conditions"] = conditions
    return status


def is_up_to_date(replica_set: Json, status: Json) -> bool:
    """Return whether the status is unchanged. Missing counts equal 0."""
    old = {name: count for name, count in (replica_set.get("status") or {}).items() if count or name not in _COUNTS}
    return {"replicas": 0} | old == status


def _counts(replica_set: Json, pods: Sequence[Json], now: datetime) -> dict[str, int]:
    spec = replica_set["spec"]
    template, seconds = labels_of(spec["template"]).items(), spec.get("minReadySeconds") or 0
    ready = [pod for pod in pods if is_ready(pod)]
    return {
        "fullyLabeledReplicas": sum(template <= labels_of(pod).items() for pod in pods),
        "readyReplicas": len(ready),
        "availableReplicas": sum(is_available(pod, seconds, now) for pod in ready) if seconds else len(ready),
    }


def _conditions(
    replica_set: Json, conditions: list[Json], count: int, failure: str | None, now: datetime
) -> list[Json]:
    """Return the conditions; an existing ReplicaFailure stays unchanged until the failure ends."""
    is_known = any(condition["type"] == REPLICA_FAILURE for condition in conditions)
    if failure is None:
        return without_condition(conditions, REPLICA_FAILURE)
    return conditions if is_known else [*conditions, _failure(replica_set, count, failure, now)]


def _failure(replica_set: Json, count: int, message: str, now: datetime) -> Json:
    condition = {"type": REPLICA_FAILURE, "status": "True", "lastTransitionTime": format_time(now)}
    if missing := replica_set["spec"]["replicas"] - count:
        condition["reason"] = "FailedCreate" if missing > 0 else "FailedDelete"
    return condition | {"message": message}
