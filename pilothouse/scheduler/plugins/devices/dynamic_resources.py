"""DynamicResources: filters nodes by the devices of the pod's claims, and writes allocations before binding."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.client.cache.indexer import Indexer
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kinds.node_affinity import NodeSelector
from pilothouse.kinds.owners import is_controlled_by
from pilothouse.machinery.names import GroupVersionResource
from pilothouse.machinery.objects import Json, metadata, name_of, namespace_of, uid_of
from pilothouse.machinery.status_error import PilothouseError
from pilothouse.scheduler.cache.node_info import NodeInfo
from pilothouse.scheduler.cache.pod_info import PodInfo
from pilothouse.scheduler.cluster_events import Action, EventHint, Subject
from pilothouse.scheduler.diagnosis import Rejection
from pilothouse.scheduler.plugins.devices.allocator import Allocator, CannotAllocate
from pilothouse.scheduler.plugins.devices.slices import SelectionFailed, devices_for
from pilothouse.scheduler.plugins.handle import Handle
from pilothouse.scheduler.plugins.interface import PreFiltered, ReservingPlugin

RESOURCE_CLAIMS = GroupVersionResource("resource.k8s.io", "v1", "resourceclaims")
FINALIZER = "resource.kubernetes.io/delete-protection"

MOST_CONSUMERS = 256


class DynamicResources(ReservingPlugin[list[tuple[Json, Json | None]]]):
    name = "DynamicResources"

    def __init__(self, handle: Handle) -> None:
        super().__init__(handle)
        self.events = (
            EventHint(Subject.RESOURCE_CLAIM, Action.ADD | Action.UPDATE, self._may_help),
            EventHint(Subject.RESOURCE_CLAIM, Action.DELETE),
            EventHint(Subject.RESOURCE_SLICE, Action.ADD | Action.UPDATE),
            EventHint(Subject.DEVICE_CLASS, Action.ADD | Action.UPDATE),
            EventHint(Subject.PENDING_POD, Action.GENERATED_CLAIMS),
            EventHint(Subject.NODE, Action.ADD | Action.LABELS | Action.TAINTS),
        )
        self._written: dict[str, Json] = {}
        """Claim key → written allocation, until the informer shows the allocation."""

    def pre_enqueue(self, pod: PodInfo) -> str | None:
        if not pod.spec.get("resourceClaims"):
            return None
        try:
            resource_claims_of(pod, self.handle.listers.resource_claims)
        except ClaimUnusable as error:
            return str(error)
        return None

    def pre_filter(self, pod: PodInfo) -> PreFiltered:
        if not pod.spec.get("resourceClaims"):
            return None
        try:
            claims = resource_claims_of(pod, self.handle.listers.resource_claims)
        except ClaimUnusable as error:
            return self.reject(str(error), final=True)
        if any(not is_reserved_for(pod, claim) and len(consumers_of(claim)) >= MOST_CONSUMERS for claim in claims):
            return self.reject("resourceclaim in use", final=True)

        def check(node: NodeInfo) -> Rejection | None:
            if not all(_is_reached(claim, node) for claim in claims):
                return self.reject("resourceclaim not available on the node", final=True)
            try:
                self._allocate(claims, node)
            except (CannotAllocate, SelectionFailed) as error:
                return self.reject(str(error), final=True)
            return None

        return check if claims else None

    def reserve(self, pod: PodInfo, node: NodeInfo) -> None:
        """Allocate the pod's claims on the node. Raises CannotAllocate, SelectionFailed or ClaimUnusable."""
        if not pod.spec.get("resourceClaims"):
            return
        claims = resource_claims_of(pod, self.handle.listers.resource_claims)
        if claims:
            self._reserved[pod.uid] = self._allocate(claims, node)

    def unreserve(self, pod: PodInfo, node_name: str) -> None:
        self._reserved.pop(pod.uid, None)

    async def pre_bind(self, pod: PodInfo, node_name: str) -> None:
        """Write the allocations. Raises StatusError or ConnectionFailed."""
        for claim, allocation in self._reserved[pod.uid]:
            await self._write(pod, claim, allocation)
        del self._reserved[pod.uid]

    async def _write(self, pod: PodInfo, claim: Json, allocation: Json | None) -> None:
        """Write a new allocation and the reservation for the pod. Raises Conflict if the claim has changed."""
        client = self.handle.client
        assert client is not None
        claims = client.for_resource(RESOURCE_CLAIMS, namespace=namespace_of(claim))
        finalizers = metadata(claim).get("finalizers") or []
        if allocation is not None and FINALIZER not in finalizers:
            meta = {**metadata(claim), "finalizers": [*finalizers, FINALIZER]}
            claim = await claims.update({**claim, "metadata": meta})
        if is_reserved_for(pod, claim) and allocation is None:
            return
        consumer = {"resource": "pods", "name": pod.name, "uid": pod.uid}
        status = {**(claim.get("status") or {}), "reservedFor": [*consumers_of(claim), consumer]}
        await claims.update_status({**claim, "status": status | ({"allocation": allocation} if allocation else {})})
        if allocation is not None:
            self._written[f"{pod.namespace}/{name_of(claim)}"] = allocation

    def _allocate(self, claims: Sequence[Json], node: NodeInfo) -> list[tuple[Json, Json | None]]:
        """Return each claim with its new allocation; None for claims that have an allocation."""
        waiting = [claim for claim in claims if allocation_of(claim) is None]
        if not waiting:
            return [(claim, None) for claim in claims]
        listers = self.handle.listers
        devices = devices_for(node, listers.resource_slices.list())
        written = [allocation_of(claim) for claim in self.handle.listers.resource_claims.list()]
        self._written = {key: value for key, value in self._written.items() if self._is_not_shown(key)}
        coming = [allocation for reserved in self._reserved.values() for _, allocation in reserved]
        taken = {
            (result["driver"], result["pool"], result["device"])
            for allocation in (*written, *self._written.values(), *coming)
            if allocation is not None
            for result in (allocation.get("devices") or {}).get("results") or ()
            if not result.get("adminAccess")
        }
        allocations = Allocator(devices, taken, listers.device_classes).allocate(waiting)
        new = {uid_of(claim): allocation for claim, allocation in zip(waiting, allocations, strict=True)}
        return [(claim, new.get(uid_of(claim))) for claim in claims]

    def _is_not_shown(self, key: str) -> bool:
        claim = self.handle.listers.resource_claims.get_by_key(key)
        return claim is not None and allocation_of(claim) is None

    def _may_help(self, pod: PodInfo, old: Json | None, new: Json | None) -> bool:
        """Return whether the claim belongs to the pod or has released devices."""
        if new is None:
            return True
        given_back = old is not None and allocation_of(old) is not None and allocation_of(new) is None
        names = {claim.get("resourceClaimName") for claim in pod.spec.get("resourceClaims") or ()}
        names |= {status.get("resourceClaimName") for status in pod.status.get("resourceClaimStatuses") or ()}
        return given_back or (namespace_of(new) == pod.namespace and name_of(new) in names)


def _is_reached(claim: Json, node: NodeInfo) -> bool:
    """Return whether the claim's allocation is usable on the node."""
    selector = (allocation_of(claim) or {}).get("nodeSelector")
    return selector is None or NodeSelector.read(selector).matches(node.node or {})


class ClaimUnusable(PilothouseError):
    """A claim blocks the pod; the message is the reason."""


def resource_claims_of(pod: PodInfo, claims: Indexer) -> list[Json]:
    """Return the pod's claims. Raises ClaimUnusable."""
    found = []
    for reference in pod.spec.get("resourceClaims") or ():
        name = _claim_name(pod, reference)
        if name is None:
            continue  # the pod turned out to need no claim
        claim = claims.get_by_key(f"{pod.namespace}/{name}")
        if claim is None:
            raise ClaimUnusable(f'resourceclaim.resource.k8s.io "{name}" not found')
        if is_deleting(claim):
            raise ClaimUnusable(f'resourceclaim "{name}" is being deleted')
        if reference.get("resourceClaimTemplateName") and not is_controlled_by(claim, pod.pod):
            raise ClaimUnusable(
                f"ResourceClaim {pod.namespace}/{name} was not created for pod {pod.key} (pod is not owner)"
            )
        found.append(claim)
    return found


def allocation_of(claim: Json) -> Json | None:
    allocation: Json | None = (claim.get("status") or {}).get("allocation")
    return allocation


def consumers_of(claim: Json) -> list[Json]:
    return list((claim.get("status") or {}).get("reservedFor") or ())


def is_reserved_for(pod: PodInfo, claim: Json) -> bool:
    return any(consumer.get("uid") == pod.uid for consumer in consumers_of(claim))


def _claim_name(pod: PodInfo, reference: Json) -> str | None:
    if name := reference.get("resourceClaimName"):
        return str(name)
    statuses = pod.status.get("resourceClaimStatuses") or ()
    status = next((claim_status for claim_status in statuses if claim_status["name"] == reference["name"]), None)
    if status is None:
        raise ClaimUnusable(f'pod "{pod.key}": ResourceClaim not created yet')
    found: str | None = status.get("resourceClaimName")
    return found
