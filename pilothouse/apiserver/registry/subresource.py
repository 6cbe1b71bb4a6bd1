"""Subresources that represent the whole object under another strategy, such as status."""

from __future__ import annotations

from dataclasses import replace

from pilothouse.apiserver.registry.context import RequestContext
from pilothouse.apiserver.registry.operations import Result, Updated, UpdateRequest
from pilothouse.apiserver.registry.options import GetOptions
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.registry.strategy import Strategy


class UpdateOnly:
    """A storage with the verb update only. An apply creates a missing object only with `may_be_applied`."""

    def __init__(self, registry: RegistryStore, strategy: Strategy, *, may_be_applied: bool = False) -> None:
        self._view = registry.with_strategy(strategy)
        self._may_be_applied = may_be_applied
        self.reset_fields = strategy.reset_fields

    async def update(self, ctx: RequestContext, name: str, update: UpdateRequest) -> Updated:
        allow_create = self._may_be_applied and update.force_allow_create
        return await self._view.update(ctx, name, replace(update, force_allow_create=allow_create))


class StatusStore(UpdateOnly):
    """The status subresource: read, update and patch.

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
