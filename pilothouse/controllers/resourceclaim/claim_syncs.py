"""Release of claims whose pods are done: remove reservations, deallocate, and delete generated claims."""

from __future__ import annotations

from pilothouse.client.cache.indexer import Indexer
from pilothouse.client.rest.client import Client
from pilothouse.controllers.resourceclaim.pods import FINALIZER, is_done, owning_pod
from pilothouse.controllers.resources import PODS, RESOURCE_CLAIMS
from pilothouse.kinds.deletion import is_deleting
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json, items, metadata, name_of, namespace_of, uid_of


@dataclass(frozen=True, slots=True)
class ClaimSyncs:
    client: Client
    pods: Indexer

    async def sync(self, claim: Json) -> None:
        """Sync the reservations of the claim. Raises StatusError."""
        reserved = items(claim, "status", "reservedFor")
        remaining = [each for each in reserved if not await self._is_over(claim, each)]
        unused_and_deleted = is_deleting(claim) and not remaining
        if len(remaining) < len(reserved) or (unused_and_deleted and FINALIZER in _finalizers(claim)):
            claim = await self._release(claim, remaining)
        if not remaining:
            owner = owning_pod(claim)
            pod = self.pods.get_by_key(f"{namespace_of(claim)}/{owner['name']}") if owner else None
            if owner is not None and pod is not None and (uid_of(pod) != owner["uid"] or is_done(pod)):
                await self.client.for_resource(RESOURCE_CLAIMS, namespace=namespace_of(claim)).delete(name_of(claim))

    async def _is_over(self, claim: Json, consumer: Json) -> bool:
        """Return whether the consumer is a finished or deleted pod. A missing pod is confirmed with the server."""
        if consumer.get("apiGroup") or consumer.get("resource") != "pods":
            return False
        pod = self.pods.get_by_key(f"{namespace_of(claim)}/{consumer['name']}")
        if pod is not None:
            return uid_of(pod) != consumer.get("uid") or is_done(pod)
        try:
            pod = await self.client.for_resource(PODS, namespace=namespace_of(claim)).get(consumer["name"])
        except NotFound:
            return True
        return uid_of(pod) != consumer.get("uid")

    async def _release(self, claim: Json, remaining: list[Json]) -> Json:
        """Write the remaining reservations; an unused claim allocated by the scheduler, i.e. with its finalizer, is
        deallocated."""
        claims = self.client.for_resource(RESOURCE_CLAIMS, namespace=namespace_of(claim))
        by_scheduler, status = FINALIZER in _finalizers(claim), dict(claim.get("status") or {})
        status.pop("reservedFor", None)
        if remaining:
            status["reservedFor"] = remaining
        elif by_scheduler:
            status.pop("allocation", None)
        if status != (claim.get("status") or {}):
            claim = await claims.update_status({**claim, "status": status})
        if by_scheduler and not status.get("allocation"):
            finalizers = [each for each in _finalizers(claim) if each != FINALIZER]
            claim = await claims.update({**claim, "metadata": {**metadata(claim), "finalizers": finalizers}})
        return claim


def _finalizers(claim: Json) -> list[str]:
    return metadata(claim).get("finalizers") or []
