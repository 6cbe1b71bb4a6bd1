"""persistentvolumeclaim-protection-controller: keeps claims while pods use them, and reports unused claims."""

from __future__ import annotations

from collections.abc import Callable

from pilothouse.apiserver.server.features import enabled
from pilothouse.client.cache.handlers import ResourceEventHandlerFuncs
from pilothouse.client.cache.keys import split_meta_namespace_key
from pilothouse.client.controller import Controller
from pilothouse.client.rest.resource import ResourceClient
from pilothouse.controllers.context import ControllerContext, with_last_state
from pilothouse.controllers.pod_index import PODS_BY_CLAIM, claim_keys, index_pods_by_claim
from pilothouse.controllers.resources import PERSISTENT_VOLUME_CLAIMS, PODS
from pilothouse.kinds import deletion
from pilothouse.kinds.conditions import conditions_of, find_condition, with_condition
from pilothouse.kinds.owners import is_controlled_by
from pilothouse.kinds.pods import has_ended, node_name
from pilothouse.kinds.references import ephemeral_claim_name
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json, name_of, namespace_of, part, uid_of
from pilothouse.machinery.times import now

FINALIZER = "kubernetes.io/pvc-protection"
_WORKERS = 10
_REPORTS_UNUSED = "PersistentVolumeClaimUnusedSinceTime"
_UNUSED = "Unused"
_IN_USE = {"status": "False", "reason": "PodUsingPVC", "message": "A pod is currently referencing this PVC"}
_NOT_IN_USE = {"status": "True", "reason": "NoPodsUsingPVC", "message": "No pods are currently referencing this PVC"}


async def run(context: ControllerContext) -> None:
    await _Protection(context).run()


class _Protection:
    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._queue = context.queue("pvcprotection", str)
        self._claims, self._pods = context.informer(PERSISTENT_VOLUME_CLAIMS), context.informer(PODS)
        index_pods_by_claim(self._pods)

    async def run(self) -> None:
        self._claims.add_event_handler(
            ResourceEventHandlerFuncs(add=self._claim_changed, update=lambda old, new: self._claim_changed(new))
        )
        self._pods.add_event_handler(
            ResourceEventHandlerFuncs(
                add=self._pod_changed, update=self._pod_updated, delete=with_last_state(self._enqueue_claims)
            )
        )
        caches, clock = (self._claims, self._pods), self._context.clock
        controller = Controller(
            "pvcprotection", self._sync, caches=caches, workers=_WORKERS, queue=self._queue, clock=clock
        )
        await controller.run()

    def _claim_changed(self, claim: Json) -> None:
        is_new = enabled(_REPORTS_UNUSED) and find_condition(claim, _UNUSED) is None
        if is_new or deletion.needs_finalizer(claim, FINALIZER) or deletion.is_deletion_candidate(claim, FINALIZER):
            self._queue.add(f"{namespace_of(claim)}/{name_of(claim)}")

    def _pod_changed(self, pod: Json) -> None:
        """Enqueue the pod's claims, unless the pod is running and still uses them; all if unused claims matter."""
        if not node_name(pod) or is_terminated(pod) or enabled(_REPORTS_UNUSED):
            self._enqueue_claims(pod)

    def _pod_updated(self, old: Json, new: Json) -> None:
        self._pod_changed(new)
        if uid_of(old) != uid_of(new):  # replaced object: the deletion event was missed
            self._enqueue_claims(old)

    def _enqueue_claims(self, pod: Json) -> None:
        for key in claim_keys(pod):
            self._queue.add(key)

    async def _sync(self, key: str) -> None:
        claim = self._claims.indexer.get_by_key(key)
        if claim is None:
            return
        claims = self._context.client.for_resource(PERSISTENT_VOLUME_CLAIMS, namespace=namespace_of(claim))
        try:
            bound = part(claim, "status").get("phase") == "Bound" and not deletion.is_deleting(claim)
            if bound and enabled(_REPORTS_UNUSED):
                claim = await self._report_use(claims, claim, is_used=await self._is_used(key, claim, refers_to))
            if deletion.is_deletion_candidate(claim, FINALIZER) and not await self._is_used(key, claim, uses):
                await claims.update(deletion.without_finalizer(claim, FINALIZER))
            elif deletion.needs_finalizer(claim, FINALIZER):
                await claims.update(deletion.with_finalizer(claim, FINALIZER))
        except NotFound:
            return

    async def _report_use(self, claims: ResourceClient, claim: Json, *, is_used: bool) -> Json:
        """Return the claim with an up-to-date condition `Unused`."""
        wanted = _IN_USE if is_used else _NOT_IN_USE
        condition = find_condition(claim, _UNUSED)
        if condition is not None and (condition.get("status") == "True") == (wanted["status"] == "True"):
            return claim
        reported = {"type": _UNUSED, **wanted, "lastTransitionTime": now()}
        status = claim["status"] | {"conditions": with_condition(conditions_of(claim), reported)}
        return await claims.update_status(claim | {"status": status})

    async def _is_used(self, key: str, claim: Json, uses: Callable[[Json, Json], bool]) -> bool:
        """Return whether a pod uses the claim, confirmed with the server: the cache may lack a newly bound pod."""
        if any(uses(pod, claim) for pod in self._pods.indexer.by_index(PODS_BY_CLAIM, key)):
            return True
        namespace = split_meta_namespace_key(key).namespace
        async for page in self._context.client.for_resource(PODS, namespace=namespace).pages():
            if any(uses(pod, claim) for pod in page["items"]):
                return True
        return False


def uses(pod: Json, claim: Json) -> bool:
    """Return whether the pod uses the claim. Unscheduled pods do not count: kubelets reject terminating claims."""
    if not node_name(pod):
        return False
    for volume in pod["spec"].get("volumes") or ():
        if part(volume, "persistentVolumeClaim").get("claimName") == name_of(claim):
            return True
        made_for_it = volume.get("ephemeral") is not None and ephemeral_claim_name(pod, volume) == name_of(claim)
        if made_for_it and not deletion.is_deleted_without_grace(pod) and is_controlled_by(claim, pod):
            return True
    return False


def refers_to(pod: Json, claim: Json) -> bool:
    """Return whether a pod that has not ended refers to the claim, scheduled or not."""
    if is_terminated(pod):
        return False
    for volume in pod["spec"].get("volumes") or ():
        if part(volume, "persistentVolumeClaim").get("claimName") == name_of(claim):
            return True
        made_for_it = volume.get("ephemeral") is not None and ephemeral_claim_name(pod, volume) == name_of(claim)
        if made_for_it and is_controlled_by(claim, pod):
            return True
    return False


def is_terminated(pod: Json) -> bool:
    """Return whether all containers have terminated permanently."""
    if has_ended(pod):
        return True
    status = pod.get("status") or {}
    kinds = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
    states = [container_status.get("state") or {} for kind in kinds for container_status in status.get(kind) or ()]
    ended = all("terminated" in state or "waiting" in state for state in states)
    return deletion.is_deleting(pod) and ended
