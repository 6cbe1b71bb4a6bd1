"""The storage of policies and bindings: a valid one is written only by those who may read its parameters."""

from __future__ import annotations

from typing import Protocol

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.registry.context import RequestContext
from pilothouse.apiserver.registry.interface import Result, Updated, UpdatedObject, Validate, ValidateUpdate
from pilothouse.apiserver.registry.options import WriteOptions
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.machinery.errors import Invalid
from pilothouse.machinery.field import Path, forbidden
from pilothouse.machinery.objects import Json, name_of


class Access(Protocol):
    async def refusal(self, user: User, obj: Json, old: Json | None) -> str: ...


class ParamCheckedStore(RegistryStore):
    """A view of a registry store: the check comes after the strategy's own, and before admission's last word."""

    _access: Access
    _path: Path

    @classmethod
    def over(cls, registry: RegistryStore, access: Access, path: Path) -> ParamCheckedStore:
        view = cls.__new__(cls)
        view.__dict__.update(registry.__dict__)
        view._access, view._path = access, path
        return view

    async def create(self, ctx: RequestContext, obj: Json, *, options: WriteOptions, validate: Validate) -> Result:
        return await super().create(ctx, obj, options=options, validate=self._checked(ctx, validate))

    async def update(
        self,
        ctx: RequestContext,
        name: str,
        updated: UpdatedObject,
        *,
        options: WriteOptions,
        validate_create: Validate,
        validate_update: ValidateUpdate,
        force_allow_create: bool = False,
    ) -> Updated:
        async def checked(obj: Json, old: Json) -> None:
            await self._check(ctx, obj, old)
            await validate_update(obj, old)

        return await super().update(
            ctx,
            name,
            updated,
            options=options,
            validate_create=self._checked(ctx, validate_create),
            validate_update=checked,
            force_allow_create=force_allow_create,
        )

    def _checked(self, ctx: RequestContext, validate: Validate) -> Validate:
        async def checked(obj: Json) -> None:
            await self._check(ctx, obj, None)
            await validate(obj)

        return checked

    async def _check(self, ctx: RequestContext, obj: Json, old: Json | None) -> None:
        if why := await self._access.refusal(ctx.user, obj, old):
            raise Invalid.of(self.resource.kind.group_kind, name_of(obj), [forbidden(self._path, why)])
