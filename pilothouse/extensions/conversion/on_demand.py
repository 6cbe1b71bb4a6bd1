"""Conversions inside synchronous computations: field management examines an object in the versions of all managers.

A computation that needs a missing conversion is aborted, the conversion is fetched, and the computation restarts.
Earlier conversions are cached, so every attempt advances and the loop terminates.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import replace
from typing import TypeAlias

import orjson

from pilothouse.apiserver.endpoints.fieldmanager.structured_merge import copy_of
from pilothouse.apiserver.endpoints.install import at_once
from pilothouse.apiserver.registry.operations import RequestContext, Updated, UpdateRequest
from pilothouse.apiserver.registry.resource import Resource
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.storage.errors import Undecodable
from pilothouse.apiserver.storage.interface import Store
from pilothouse.extensions.conversion.converter import WebhookConverter
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import StatusError

_Known: TypeAlias = dict[tuple[str, bytes], bytes]
_known: ContextVar[_Known] = ContextVar("conversions of this request")


class ConversionNeeded(Exception):
    """Aborts a computation; `to_completion` restarts it."""

    def __init__(self, obj: Json, desired: str) -> None:
        super().__init__(f"{obj['apiVersion']} in {desired}")
        self.obj = obj
        self.desired = desired


def converted(obj: Json, desired: str) -> Json:
    """Return the cached conversion. Raises ConversionNeeded for a conversion that this request has not fetched yet."""
    if obj["apiVersion"] == desired:
        return obj
    cached = _known.get({}).get((desired, orjson.dumps(obj)))
    if cached is None:
        raise ConversionNeeded(obj, desired)
    conversion: Json = orjson.loads(cached)
    return conversion


def waiting(convert: Callable[[Json], Json], converter: WebhookConverter) -> Callable[[Json], Awaitable[Json]]:
    """Turn an abortable conversion into a coroutine function that awaits the webhook."""

    once = at_once(convert)

    async def conversion(obj: Json) -> Json:
        return await to_completion(lambda: once(obj), converter)

    return conversion


async def to_completion(compute: Callable[[], Awaitable[Json]], converter: WebhookConverter) -> Json:
    """Run `compute` to completion. Raises its errors, and StatusError if a conversion fails."""
    known: _Known = {}
    token = _known.set(known)
    try:
        while True:
            try:
                return await compute()
            except ConversionNeeded as need:
                await _make(need, converter, known)
    finally:
        _known.reset(token)


async def _make(need: ConversionNeeded, converter: WebhookConverter, known: _Known) -> None:
    sent = orjson.dumps(need.obj)
    try:
        conversion = await converter.convert([orjson.loads(sent)], need.desired)
    except Undecodable as error:
        raise StatusError(str(error)) from None
    known[need.desired, sent] = orjson.dumps(conversion[0])


class ConvertingRegistry(RegistryStore):
    def __init__(self, resource: Resource, store: Store, converter: WebhookConverter, *, root: str) -> None:
        super().__init__(resource, store, root=root)
        self._converter = converter

    async def update(self, ctx: RequestContext, name: str, update: UpdateRequest) -> Updated:
        async def make(existing: Json | None) -> Json:
            async def once() -> Json:
                return await update.make(None if existing is None else copy_of(existing))

            return await to_completion(once, self._converter)

        return await super().update(ctx, name, replace(update, make=make))
