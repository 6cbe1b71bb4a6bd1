"""The registry of one version of a definition with webhook conversion."""

from __future__ import annotations

from dataclasses import replace

from pilothouse.apiserver.endpoints.fieldmanager.versions import copy_of
from pilothouse.apiserver.registry.context import RequestContext
from pilothouse.apiserver.registry.operations import Updated, UpdateRequest
from pilothouse.apiserver.registry.resource import Resource
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.storage.interface import Store
from pilothouse.extensions.conversion.converter import WebhookConverter
from pilothouse.extensions.conversion.on_demand import to_completion
from pilothouse.machinery.objects import Json


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
