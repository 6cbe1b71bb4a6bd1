"""resourceclaim-controller: creates ResourceClaims from pod templates, and releases unused claims."""

from __future__ import annotations

import asyncio
from typing import TypeAlias

from pilothouse.client.cache.handlers import Deleted, ResourceEventHandlerFuncs
from pilothouse.client.cache.indexer import Indexer
from pilothouse.client.cache.keys import last_known_state, meta_namespace_key
from pilothouse.client.controller import Controller, TryAgain
from pilothouse.client.events.event import WARNING, EventSource
from pilothouse.client.events.recorder import EventRecorder
from pilothouse.client.rest.client import Client
from pilothouse.controllers.context import ControllerContext, metrics_in, with_last_state
from pilothouse.controllers.resourceclaim import pod_syncs
from pilothouse.controllers.resources import PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from pilothouse.kinds.deletion import is_deleting
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import Conflict, NotFound
from pilothouse.machinery.objects import Json, items, metadata, name_of, namespace_of, uid_of

_NAME = "resource_claim"
_WORKERS = 10
_BY_CLAIM, _BY_TEMPLATE = "podResourceClaim", "podResourceClaimTemplate"
_POD, _CLAIM = "pod", "claim"
_Key: TypeAlias = tuple[str, str]
"""(claim or pod, namespace/name)."""


async def run(context: ControllerContext) -> None:
    await _ResourceClaims(context).run()


class _ResourceClaims:
    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._queue = context.queue(_NAME, tuple[str, str])
        self._pods, self._claims = context.informer(PODS), context.informer(RESOURCE_CLAIMS)
        self._templates = context.informer(RESOURCE_CLAIM_TEMPLATES)
        self._pods.add_indexers({_BY_CLAIM: pod_syncs.claim_keys, _BY_TEMPLATE: pod_syncs.template_keys})
        self._claims.add_indexers({pod_syncs.CLAIMS_BY_POD: _pod_uid})
        self._recorder = EventRecorder(context.client, EventSource(_NAME), clock=context.clock)
        metrics = metrics_in(context.registry, pod_syncs.ResourceClaimMetrics)
        self._pod_syncs = pod_syncs.PodSyncs(context.client, self._claims.indexer, self._templates.indexer, metrics)
        self._claim_syncs = ClaimSyncs(context.client, self._pods.indexer)

    async def run(self) -> None:
        self._pods.add_event_handler(
            ResourceEventHandlerFuncs(
                add=self._pod_changed, update=lambda old, new: self._pod_changed(new), delete=self._pod_deleted
            )
        )
        self._claims.add_event_handler(
            ResourceEventHandlerFuncs(
                add=self._claim_changed,
                update=lambda old, new: self._claim_changed(new),
                delete=with_last_state(lambda claim: self._look_at_pods(_BY_CLAIM, claim)),
            )
        )
        self._templates.add_event_handler(
            ResourceEventHandlerFuncs(add=self._template_changed, update=lambda old, new: self._template_changed(new))
        )
        caches, clock = (self._pods, self._claims, self._templates), self._context.clock
        controller = Controller(_NAME, self._sync, caches=caches, workers=_WORKERS, queue=self._queue, clock=clock)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(controller.run())
            tasks.create_task(self._recorder.run())

    def _pod_changed(self, pod: Json) -> None:
        if pod_syncs.is_done(pod):
            self._enqueue_claims(pod_syncs.claim_keys(pod))
        elif self._pod_syncs.needs_work(pod) and not is_deleting(pod):
            self._queue.add((_POD, meta_namespace_key(pod)))

    def _pod_deleted(self, deleted: Deleted) -> None:
        if (pod := last_known_state(deleted)) is not None:
            self._pod_syncs.forget(pod)
            self._enqueue_claims(pod_syncs.claim_keys(pod))

    def _enqueue_claims(self, keys: list[str]) -> None:
        for key in keys:
            self._queue.add((_CLAIM, key))

    def _claim_changed(self, claim: Json) -> None:
        self._queue.add((_CLAIM, meta_namespace_key(claim)))
        self._look_at_pods(_BY_CLAIM, claim)

    def _template_changed(self, template: Json) -> None:
        self._look_at_pods(_BY_TEMPLATE, template)

    def _look_at_pods(self, index: str, obj: Json) -> None:
        for pod in self._pods.indexer.by_index(index, meta_namespace_key(obj)):
            self._pod_changed(pod)

    async def _sync(self, key: _Key) -> None:
        kind, name = key
        cache = self._pods if kind == _POD else self._claims
        obj = cache.indexer.get_by_key(name)
        if obj is None:
            return
        try:
            if kind == _CLAIM:
                await self._claim_syncs.sync(obj)
            elif not is_deleting(obj):
                await self._pod_syncs.sync(obj)
        except NotFound:
            return
        except Conflict as error:
            raise TryAgain(str(error)) from None
        except pod_syncs.ClaimNotPossible as error:
            self._recorder.event(obj, WARNING, "FailedResourceClaimCreation", str(error))
            raise


def _pod_uid(claim: Json) -> tuple[str, ...]:
    owner = pod_syncs.owning_pod(claim)
    return (owner["uid"],) if owner else ()


@dataclass(frozen=True, slots=True)
class ClaimSyncs:
    """Releases claims whose pods are done: removes reservations, deallocates, and deletes generated claims."""

    client: Client
    pods: Indexer

    async def sync(self, claim: Json) -> None:
        """Sync the reservations of the claim. Raises StatusError."""
        reserved = items(claim, "status", "reservedFor")
        remaining = [consumer for consumer in reserved if not await self._is_over(claim, consumer)]
        unused_and_deleted = is_deleting(claim) and not remaining
        if len(remaining) < len(reserved) or (unused_and_deleted and pod_syncs.FINALIZER in _finalizers(claim)):
            claim = await self._release(claim, remaining)
        if not remaining:
            owner = pod_syncs.owning_pod(claim)
            pod = self.pods.get_by_key(f"{namespace_of(claim)}/{owner['name']}") if owner else None
            if owner is not None and pod is not None and (uid_of(pod) != owner["uid"] or pod_syncs.is_done(pod)):
                await self.client.for_resource(RESOURCE_CLAIMS, namespace=namespace_of(claim)).delete(name_of(claim))

    async def _is_over(self, claim: Json, consumer: Json) -> bool:
        """Return whether the consumer is a finished or deleted pod. A missing pod is confirmed with the server."""
        if consumer.get("apiGroup") or consumer.get("resource") != "pods":
            return False
        pod = self.pods.get_by_key(f"{namespace_of(claim)}/{consumer['name']}")
        if pod is not None:
            return uid_of(pod) != consumer.get("uid") or pod_syncs.is_done(pod)
        try:
            pod = await self.client.for_resource(PODS, namespace=namespace_of(claim)).get(consumer["name"])
        except NotFound:
            return True
        return uid_of(pod) != consumer.get("uid")

    async def _release(self, claim: Json, remaining: list[Json]) -> Json:
        """Write the remaining reservations; an unused claim allocated by the scheduler, i.e. with its finalizer, is
        deallocated."""
        claims = self.client.for_resource(RESOURCE_CLAIMS, namespace=namespace_of(claim))
        by_scheduler, status = pod_syncs.FINALIZER in _finalizers(claim), dict(claim.get("status") or {})
        status.pop("reservedFor", None)
        if remaining:
            status["reservedFor"] = remaining
        elif by_scheduler:
            status.pop("allocation", None)
        if status != (claim.get("status") or {}):
            claim = await claims.update_status({**claim, "status": status})
        if by_scheduler and not status.get("allocation"):
            finalizers = [finalizer for finalizer in _finalizers(claim) if finalizer != pod_syncs.FINALIZER]
            claim = await claims.update({**claim, "metadata": {**metadata(claim), "finalizers": finalizers}})
        return claim


def _finalizers(claim: Json) -> list[str]:
    return metadata(claim).get("finalizers") or []
