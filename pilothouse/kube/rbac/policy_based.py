"""The storage of roles and bindings behind a check of every write."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Protocol

from pilothouse.apiserver.registry.context import RequestContext
from pilothouse.apiserver.registry.operations import MakeObject, Result, Updated, UpdateRequest, Validate
from pilothouse.apiserver.registry.options import WriteOptions
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.registry.view import RegistryView
from pilothouse.kube.rbac.escalation import may_everything
from pilothouse.machinery.objects import Json, metadata
from pilothouse.machinery.validation.immutable import semantically_equal

_GARBAGE_COLLECTION = ("ownerReferences", "finalizers", "selfLink", "managedFields")


class EscalationCheck(Protocol):
    """Raises to refuse. `old` is None where the object is created, `name` is empty where the path has none."""

    async def __call__(self, ctx: RequestContext, obj: Json, *, old: Json | None, name: str) -> None: ...


class PolicyBasedStorage(RegistryView):
    def __init__(self, registry: RegistryStore, check: EscalationCheck) -> None:
        super().__init__(registry)
        self._check = check

    async def create(self, ctx: RequestContext, obj: Json, *, options: WriteOptions, validate: Validate) -> Result:
        await self._check(ctx, obj, old=None, name="")
        return await super().create(ctx, obj, options=options, validate=validate)

    async def update(self, ctx: RequestContext, name: str, update: UpdateRequest) -> Updated:
        if not may_everything(ctx):
            update = replace(update, make=self._checked(ctx, name, update.make))
        return await super().update(ctx, name, update)

    def _checked(self, ctx: RequestContext, name: str, make: MakeObject) -> MakeObject:
        async def checked(current: Json | None) -> Json:
            old = deepcopy(current)
            obj = await make(current)
            if old is None or not only_for_garbage_collection(obj, old):
                await self._check(ctx, obj, old=old, name=name)
            return obj

        return checked


def only_for_garbage_collection(obj: Json, old: Json) -> bool:
    """Return whether nothing changes but fields that whoever collects garbage must be able to change in any role."""
    return semantically_equal(_without_links(obj), _without_links(old))


def _without_links(obj: Json) -> Json:
    meta = {key: value for key, value in metadata(obj).items() if key not in _GARBAGE_COLLECTION}
    return {**obj, "metadata": meta}
