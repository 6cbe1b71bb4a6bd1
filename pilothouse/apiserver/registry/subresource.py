"""Subresources that show the whole object under other rules, such as status."""

from __future__ import annotations

from dataclasses import replace

from pilothouse.apiserver.registry.context import RequestContext
from pilothouse.apiserver.registry.interface import Result, Updated, UpdateRequest
from pilothouse.apiserver.registry.options import GetOptions
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.registry.strategy import Strategy


class UpdateOnly:
    """Can be updated and nothing else; never creates, even where the resource itself would."""

    def __init__(self, registry: RegistryStore, strategy: Strategy) -> None:
        self._view = registry.with_strategy(strategy)
        self.reset_fields = strategy.reset_fields

    async def update(self, ctx: RequestContext, name: str, update: UpdateRequest) -> Updated:
        return await self._view.update(ctx, name, replace(update, force_allow_create=False))


class StatusStore(UpdateOnly):
    """The status subresource: read, updated and patched.

    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> from pilothouse.apiserver import Names, RegistryStore, Resource, SqliteStore, StatusStore, Strategy
    >>> class FlunderStatusStrategy(Strategy):
    ...     reset_fields = ("spec",)
    >>> store = await SqliteStore.open(Path(mkdtemp()))
    >>> registry = RegistryStore(Resource(Names("flunders", "Flunder"), Strategy(), "wardle.example.com"), store)
    >>> StatusStore(registry, FlunderStatusStrategy()).reset_fields
    ('spec',)
    >>> await store.close()
    """

    async def get(self, ctx: RequestContext, name: str, options: GetOptions) -> Result:
        return await self._view.get(ctx, name, options)
