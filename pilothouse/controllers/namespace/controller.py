"""namespace-controller: deletes the content of terminating namespaces, then finalizes them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime

from pilothouse.client.cache.handlers import ResourceEventHandlerFuncs
from pilothouse.client.clock import Clock
from pilothouse.client.controller import Controller, Requeue
from pilothouse.client.discovery import APIResource, DiscoveryClient
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.errors import ConnectionFailed, InvalidResponse
from pilothouse.controllers.context import ControllerContext
from pilothouse.controllers.namespace.conditions import Progress, discovery_failed, update_conditions
from pilothouse.controllers.namespace.content import PODS, Content, Remaining
from pilothouse.kinds.deletion import is_deleting
from pilothouse.machinery.errors import Conflict, NotFound
from pilothouse.machinery.names import GroupVersionResource
from pilothouse.machinery.objects import Json, items, metadata, name_of, uid_of
from pilothouse.machinery.status_error import PilothouseError, StatusError, aggregate

NAMESPACES = GroupVersionResource("", "v1", "namespaces")
_RESYNC = 300.0
_SOON = 0.25
_MAX_DELAY = 60.0
"""Maximum retry delay of a namespace, in seconds."""
_FINALIZER = "kubernetes"
_RESOURCES_AT_ONCE = 8


async def run(context: ControllerContext) -> None:
    queue = context.queue("namespace", str, max_delay=_MAX_DELAY)
    grace = context.config.namespace_deletion_grace_period

    def enqueue(namespace: Json) -> None:
        if is_deleting(namespace):
            queue.add_after(name_of(namespace), grace)

    informer = context.informer(NAMESPACES)
    handler = ResourceEventHandlerFuncs(add=enqueue, update=lambda old, new: enqueue(new))
    informer.add_event_handler(handler, resync_period=_RESYNC)
    deleter = NamespacedResourcesDeleter(context.client, context.clock)

    async def sync(name: str) -> Requeue | None:
        namespace = informer.indexer.get_by_key(name)
        if namespace is None or not is_deleting(namespace):
            return None
        estimate = await deleter.delete(name)
        return Requeue(_wait(namespace, estimate, context.clock)) if estimate else None

    workers = context.config.concurrent_namespace_syncs
    await Controller("namespace", sync, caches=(informer,), workers=workers, queue=queue, clock=context.clock).run()


def _wait(namespace: Json, estimate: int, clock: Clock) -> float:
    """Return the retry delay: at most half the estimate, as upstream; less for recent deletions."""
    deleted_at = datetime.fromisoformat(metadata(namespace)["deletionTimestamp"]).timestamp()
    age = max(0.0, clock.wall() - deleted_at)
    return min(estimate // 2 + 1, max(_SOON, age / 2))


class NamespaceDeletionFailed(PilothouseError):
    """Some content could not be deleted; the deletion is retried."""


class NamespacedResourcesDeleter:
    """Deletes a namespace: pods first, then all other content, then its finalizer.

    A failure does not stop the deletion of other resources. If discovery of an API group fails, the namespace is kept
    and its conditions report the failure.
    """

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._namespaces = client.resource("v1", "namespaces")
        self._clock = clock

    async def delete(self, name: str) -> int:
        """Delete the namespace's content and finalize it; return the seconds until a retry, 0 when done.

        Raises StatusError or NamespaceDeletionFailed.
        """
        try:
            namespace = await self._changed(await self._namespaces.get(name), self._say_terminating)
            if not is_deleting(namespace) or not _finalizers(namespace):
                return 0
            progress = Progress()
            resources = await self._discover(progress)
            pods = [resource for resource in resources if resource.resource.group_resource == PODS]
            others = [resource for resource in resources if resource.resource.group_resource != PODS]
            estimate = await self._delete_content(namespace, pods, progress)
            if not progress.remaining:
                estimate = max(estimate, await self._delete_content(namespace, others, progress))
            await self._report(namespace, progress)
            failures = [*([progress.discovery_failure.message] if progress.discovery_failure else ()), *progress.errors]
            if failures:
                raise NamespaceDeletionFailed(aggregate(failures))
            if not estimate:
                await self._changed(namespace, self._finalize)
        except NotFound:
            return 0
        return estimate

    async def _changed(self, namespace: Json, change: Callable[[Json], Awaitable[Json]]) -> Json:
        """Apply the change, with retries on conflict; return the changed namespace."""
        while True:
            try:
                return await change(namespace)
            except Conflict:
                newest = await self._namespaces.get(name_of(namespace))
                if uid_of(newest) != uid_of(namespace):
                    raise NamespaceDeletionFailed("namespace uid has changed across retries") from None
                namespace = newest

    async def _say_terminating(self, namespace: Json) -> Json:
        status = namespace.get("status") or {}
        if not is_deleting(namespace) or status.get("phase") == "Terminating":
            return namespace
        return await self._namespaces.update_status({**namespace, "status": {**status, "phase": "Terminating"}})

    async def _finalize(self, namespace: Json) -> Json:
        kept = sorted({finalizer for finalizer in _finalizers(namespace) if finalizer != _FINALIZER})
        wanted = {**namespace, "spec": {**namespace["spec"], "finalizers": kept}}
        return await self._namespaces.update(wanted, subresource="finalize")

    async def _discover(self, progress: Progress) -> list[APIResource]:
        """Return the deletable namespaced resources that were discovered; failures are recorded in `progress`."""
        try:
            discovered = await DiscoveryClient(self._client).server_resources()
        except (StatusError, ConnectionFailed, InvalidResponse) as error:
            progress.discovery_failure = discovery_failed(str(error), 0)
            return []
        if discovered.failure:
            progress.discovery_failure = discovery_failed(discovered.failure, len(discovered.failed))
        deletable = (
            resource for resource in discovered.preferred() if resource.namespaced and "delete" in resource.verbs
        )
        return [resource for resource in deletable if not resource.is_subresource]

    async def _delete_content(self, namespace: Json, resources: list[APIResource], progress: Progress) -> int:
        """Delete the content; return the maximum estimate in seconds."""
        age = self._clock.wall() - datetime.fromisoformat(metadata(namespace)["deletionTimestamp"]).timestamp()
        turn = asyncio.Semaphore(_RESOURCES_AT_ONCE)

        async def delete(resource: APIResource) -> int:
            async with turn:
                remaining = await self._delete_resource(Content(self._client, resource, name_of(namespace)), age)
            if remaining.problem:
                progress.errors.append(remaining.problem)
            if remaining.number:
                progress.remaining[resource.resource] = remaining.number
                progress.finalizers.update(remaining.finalizers)
            return remaining.estimate

        return max(await asyncio.gather(*(delete(resource) for resource in resources)), default=0)

    async def _delete_resource(self, content: Content, age: float) -> Remaining:
        try:
            return await content.delete(age)
        except (StatusError, ConnectionFailed, InvalidResponse) as error:
            return Remaining(problem=str(error))

    async def _report(self, namespace: Json, progress: Progress) -> None:
        """Write the conditions; on a conflict, the next attempt writes them."""
        updated = update_conditions(namespace, progress.verdicts(), self._clock.wall())
        if updated is None:
            return
        try:
            namespace.update(await self._namespaces.update_status(updated))
        except Conflict:
            return


def _finalizers(namespace: Json) -> list[str]:
    return items(namespace, "spec", "finalizers")
