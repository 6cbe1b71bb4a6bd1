"""Create: generated fields, strategy, validating admission, store."""

from __future__ import annotations

import marshal
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from pilothouse.apiserver.registry.before import before_create
from pilothouse.apiserver.registry.errors import map_storage_errors
from pilothouse.apiserver.registry.metadata import fill_system_fields
from pilothouse.apiserver.registry.operations import RequestContext, Result, Validate
from pilothouse.apiserver.registry.options import WriteOptions
from pilothouse.apiserver.registry.resource_version import object_resource_version
from pilothouse.apiserver.registry.strategy import Objections
from pilothouse.machinery.errors import AlreadyExists
from pilothouse.machinery.objects import Json, metadata, name_of
from pilothouse.machinery.status_error import StatusError

if TYPE_CHECKING:
    from pilothouse.apiserver.registry.store import RegistryStore

# A million names with one prefix collide with a probability of 0.1 %.
_NAME_ATTEMPTS = 8


async def create(
    registry: RegistryStore, ctx: RequestContext, obj: Json, *, options: WriteOptions, validate: Validate
) -> Result:
    """Create an object. A generated name that exists is replaced by another one. Raises AlreadyExists, Invalid."""
    if name_of(obj) or not metadata(obj).get("generateName"):
        return await _create(registry, ctx, obj, options=options, validate=validate)
    unnamed = await ctx.weight.run(_frozen, registry, obj)
    for _ in range(_NAME_ATTEMPTS - 1):
        try:
            return await _create(registry, ctx, obj, options=options, validate=validate)
        except AlreadyExists:
            obj = await ctx.weight.run(unnamed)
    return await _create(registry, ctx, obj, options=options, validate=validate)


def _frozen(registry: RegistryStore, obj: Json) -> Callable[[], Json]:
    """Return a function that makes exact copies of `obj` as it is now. Names rarely exist, so only copies cost much."""
    try:
        text = marshal.dumps(obj)
    except ValueError:  # values besides those of JSON, such as raw text
        copy = registry.objects.copy_of(obj)
        return lambda: registry.objects.copy_of(copy)
    return lambda: cast("Json", marshal.loads(text))


async def _create(
    registry: RegistryStore, ctx: RequestContext, obj: Json, *, options: WriteOptions, validate: Validate
) -> Result:
    fill_system_fields(obj)
    if metadata(obj).get("generateName") and not name_of(obj):
        metadata(obj)["name"] = registry.strategy.generate_name(metadata(obj)["generateName"])
    async with registry.hooks.around_create(obj, dry_run=options.dry_run) as objections:
        await prepare(registry, ctx, obj, validate, objections)
        if not options.dry_run:
            # The store assigns the version. Invalid text is ignored.
            if _names_a_version(obj):
                raise StatusError("resourceVersion should not be set on objects to be created")
            metadata(obj).pop("resourceVersion", None)
        key = registry.keys.object(ctx.namespace, name_of(obj))
        try:
            with map_storage_errors(ctx.resource, name_of(obj)):
                return await registry.objects.create(
                    key, obj, ttl=registry.strategy.ttl(obj), dry_run=options.dry_run, weight=ctx.weight
                )
        except AlreadyExists as error:
            raise await _explained(registry, ctx, key, obj, error) from None


async def prepare(
    registry: RegistryStore, ctx: RequestContext, obj: Json, validate: Validate, objections: Objections
) -> None:
    """Run all steps before the write. An update that creates an object also runs them."""
    kind = registry.resource.kind.group_kind
    await ctx.weight.run_or_restart(before_create, registry.strategy, ctx, kind, obj, objections)
    await validate(obj)


def _names_a_version(obj: Json) -> bool:
    try:
        return object_resource_version(obj) != 0
    except StatusError:
        return False


async def _explained(
    registry: RegistryStore, ctx: RequestContext, key: str, obj: Json, error: AlreadyExists
) -> AlreadyExists:
    """Return a specific error for a collision of generated names, and for an object that is being deleted."""
    if metadata(obj).get("generateName"):
        error = AlreadyExists.no_unique_name(ctx.resource, name_of(obj))
    existing = await registry.objects.get(key)
    if existing is None:
        return error
    ctx.weight.at_least(existing.size)
    if metadata(await ctx.weight.run(existing.parse)).get("deletionTimestamp"):
        return AlreadyExists(f"object is being deleted: {error.message}", details=error.details)
    return error
