"""Delete: at once, or by a mark that leaves the removal to finalizers or to the grace period."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from pilothouse.apiserver.registry import finalizers_and_grace
from pilothouse.apiserver.registry.errors import map_storage_errors
from pilothouse.apiserver.registry.operations import Deleted, RequestContext, Result, Validate
from pilothouse.apiserver.registry.options import DeleteOptions
from pilothouse.apiserver.storage.errors import KeyNotFound, RevisionConflict
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json, metadata, name_of, uid_of

if TYPE_CHECKING:
    from pilothouse.apiserver.registry.store import RegistryStore


async def delete(
    registry: RegistryStore, ctx: RequestContext, name: str, *, options: DeleteOptions, validate: Validate
) -> Deleted:
    """Delete an object. Retry if the object changes between the check and the write. Raises NotFound, Conflict."""
    key = registry.keys.object(ctx.namespace, name)
    while True:
        with map_storage_errors(ctx.resource, name):
            current = await registry.objects.get(key)
            if current is None:
                raise NotFound.of(ctx.resource, name)
            try:
                return await _delete(registry, ctx, current, options=options, validate=validate)
            except RevisionConflict:
                continue


async def delete_listed(
    registry: RegistryStore, ctx: RequestContext, stored: StoredObject, *, options: DeleteOptions, validate: Validate
) -> None:
    """Delete one object of a collection. An object that is already gone is not an error."""
    namespace, name = registry.keys.names(stored.key)
    try:
        await delete(registry, replace(ctx, namespace=namespace), name, options=options, validate=validate)
    except NotFound:
        return


async def delete_all(
    registry: RegistryStore,
    ctx: RequestContext,
    listed: Iterable[StoredObject],
    *,
    options: DeleteOptions,
    validate: Validate,
) -> None:
    """Delete the listed objects with the context's concurrency. Raises the error of the first failed delete."""
    left = iter(listed)

    async def work() -> None:
        for stored in left:
            await delete_listed(registry, ctx, stored, options=options, validate=validate)

    try:
        async with asyncio.TaskGroup() as workers:
            for _ in range(max(ctx.delete_workers, 1)):
                workers.create_task(work())
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None


async def _delete(
    registry: RegistryStore, ctx: RequestContext, current: StoredObject, *, options: DeleteOptions, validate: Validate
) -> Deleted:
    ctx.weight.at_least(current.size)
    obj = await ctx.weight.run(current.parse)
    grace = finalizers_and_grace.begin_graceful_deletion(
        registry.strategy, obj, options, registry.resource.kind.group_kind
    )
    if grace.pending:
        return Deleted(_answer(registry, ctx, current, obj), immediately=False)
    await validate(await ctx.weight.run(current.parse))
    finalizers: list[str] = metadata(obj).get("finalizers") or []
    if ctx.collects_garbage:
        finalizers = finalizers_and_grace.deletion_finalizers(registry.strategy, obj, options)
    if not (grace.graceful or finalizers or metadata(obj).get("finalizers")):
        return await _remove(registry, ctx, current, obj, dry_run=options.dry_run)
    if finalizers:
        metadata(obj)["finalizers"] = finalizers
    else:
        metadata(obj).pop("finalizers", None)
    if not grace.graceful:
        if not finalizers:
            return await _remove(registry, ctx, current, obj, dry_run=options.dry_run)
        finalizers_and_grace.mark_as_deleting(obj)
    marked = await _mark(registry, ctx, current, obj, dry_run=options.dry_run)
    if finalizers or grace.options.grace_period_seconds:
        return Deleted(marked, immediately=False)
    if not isinstance(marked, StoredObject):
        return Deleted(marked)
    try:
        return await _remove(registry, ctx, marked, obj, dry_run=False)
    except KeyNotFound:  # a concurrent removal is not an error
        return Deleted(_answer(registry, ctx, marked, obj))


async def _mark(
    registry: RegistryStore, ctx: RequestContext, current: StoredObject, obj: Json, *, dry_run: bool
) -> Result:
    if await ctx.weight.run(lambda: obj == current.parse()):
        return current
    return await registry.objects.update(
        current, obj, ttl=registry.strategy.ttl(obj), dry_run=dry_run, weight=ctx.weight
    )


async def _remove(
    registry: RegistryStore, ctx: RequestContext, current: StoredObject, obj: Json, *, dry_run: bool
) -> Deleted:
    deleted = await registry.objects.delete(current, dry_run=dry_run)
    await registry.hooks.after_delete(deleted, dry_run=dry_run)
    return Deleted(_answer(registry, ctx, deleted, obj))


def _answer(registry: RegistryStore, ctx: RequestContext, deleted: StoredObject, obj: Json) -> Result:
    """Return the object, or a Status that names the deleted object. `obj` is any state of the object."""
    if registry.resource.returns_deleted_object:
        return deleted
    details = {"name": name_of(obj), "group": ctx.resource.group, "kind": ctx.resource.resource, "uid": uid_of(obj)}
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {key: value for key, value in details.items() if value},
    }
