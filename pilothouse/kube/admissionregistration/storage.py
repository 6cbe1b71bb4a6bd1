"""The storage of policies and bindings: a valid one is written only by those who may read its parameters."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.registry.context import RequestContext
from pilothouse.apiserver.registry.interface import Result, Updated, UpdateRequest, Validate
from pilothouse.apiserver.registry.options import WriteOptions
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.registry.view import RegistryView
from pilothouse.machinery.errors import Invalid
from pilothouse.machinery.field import Path, forbidden
from pilothouse.machinery.objects import Json, name_of


class Access(Protocol):
    async def refusal(self, user: User, obj: Json, old: Json | None) -> str: ...


class ParamCheckedStorage(RegistryView):
    """The check comes after the strategy's own, and before admission's last word."""

    def __init__(self, registry: RegistryStore, access: Access, path: Path) -> None:
        super().__init__(registry)
        self._access = access
        self._path = path

    async def create(self, ctx: RequestContext, obj: Json, *, options: WriteOptions, validate: Validate) -> Result:
        return await super().create(ctx, obj, options=options, validate=self._checked(ctx, validate))

    async def update(self, ctx: RequestContext, name: str, update: UpdateRequest) -> Updated:
        async def checked(obj: Json, old: Json) -> None:
            await self._check(ctx, obj, old)
            await update.validate_update(obj, old)

        create = self._checked(ctx, update.validate_create)
        return await super().update(ctx, name, replace(update, validate_create=create, validate_update=checked))

    def _checked(self, ctx: RequestContext, validate: Validate) -> Validate:
        async def checked(obj: Json) -> None:
            await self._check(ctx, obj, None)
            await validate(obj)

        return checked

    async def _check(self, ctx: RequestContext, obj: Json, old: Json | None) -> None:
        if why := await self._access.refusal(ctx.user, obj, old):
            raise Invalid.of(self.resource.kind.group_kind, name_of(obj), [forbidden(self._path, why)])
