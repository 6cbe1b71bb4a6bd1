"""resourceclaim-controller: creates ResourceClaims from pod templates, and releases unused claims."""

from __future__ import annotations

import asyncio
from typing import TypeAlias

from pilothouse.client.cache.handlers import Deleted, ResourceEventHandlerFuncs
from pilothouse.client.cache.keys import last_known_state, meta_namespace_key
from pilothouse.client.controller import Controller, TryAgain
from pilothouse.client.events.event import WARNING, EventSource
from pilothouse.client.events.recorder import EventRecorder
from pilothouse.controllers.context import ControllerContext
from pilothouse.controllers.metrics import metrics_in
from pilothouse.controllers.resourceclaim.claim_syncs import ClaimSyncs
from pilothouse.controllers.resourceclaim.pod_syncs import (
    CLAIMS_BY_POD,
    ClaimNotPossible,
    PodSyncs,
    ResourceClaimMetrics,
)
from pilothouse.controllers.resourceclaim.pods import claim_keys, is_done, owning_pod, template_keys
from pilothouse.controllers.resources import PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from pilothouse.kinds.deletion import is_deleting
from pilothouse.machinery.errors import Conflict, NotFound
from pilothouse.machinery.objects import Json

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
        self._pods.add_indexers({_BY_CLAIM: claim_keys, _BY_TEMPLATE: template_keys})
        self._claims.add_indexers({CLAIMS_BY_POD: _pod_uid})
        self._recorder = EventRecorder(context.client, EventSource(_NAME), clock=context.clock)
        metrics = metrics_in(context.registry, ResourceClaimMetrics)
        self._pod_syncs = PodSyncs(context.client, self._claims.indexer, self._templates.indexer, metrics)
        self._claim_syncs = ClaimSyncs(context.client, self._pods.indexer)

    async def run(self) -> None:
        self._pods.add_event_handler(
            ResourceEventHandlerFuncs(
                add=self._pod_changed, update=lambda old, new: self._pod_changed(new), delete=self._pod_deleted
            )
        )
        self._claims.add_event_handler(
            ResourceEventHandlerFuncs(
                add=self._claim_changed, update=lambda old, new: self._claim_changed(new), delete=self._claim_deleted
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
        if is_done(pod):
            self._enqueue_claims(claim_keys(pod))
        elif self._pod_syncs.needs_work(pod) and not is_deleting(pod):
            self._queue.add((_POD, meta_namespace_key(pod)))

    def _pod_deleted(self, deleted: Deleted) -> None:
        if (pod := last_known_state(deleted)) is not None:
            self._pod_syncs.forget(pod)
            self._enqueue_claims(claim_keys(pod))

    def _enqueue_claims(self, keys: list[str]) -> None:
        for key in keys:
            self._queue.add((_CLAIM, key))

    def _claim_changed(self, claim: Json) -> None:
        self._queue.add((_CLAIM, meta_namespace_key(claim)))
        self._look_at_pods(_BY_CLAIM, claim)

    def _claim_deleted(self, deleted: Deleted) -> None:
        if (claim := last_known_state(deleted)) is not None:
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
        except ClaimNotPossible as why:
            self._recorder.event(obj, WARNING, "FailedResourceClaimCreation", str(why))
            raise


def _pod_uid(claim: Json) -> tuple[str, ...]:
    owner = owning_pod(claim)
    return (owner["uid"],) if owner else ()
