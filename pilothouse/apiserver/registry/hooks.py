"""Hooks around writes that concern more than the object itself: taking things from a pool, and giving them back.

A create or an update runs inside its hook. The hook gets the object before the strategy's rules do; when the write
fails for any reason, the error leaves through the hook, which then undoes what it did. A hook may yield what it has
against the write: the object is then refused for that first, and for all that the strategy finds.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TypeAlias

from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.machinery.field import FieldError
from pilothouse.machinery.objects import Json

Objections: TypeAlias = Sequence[FieldError] | None


class Hooks:
    """The hooks of one resource. These do nothing, which is right for most."""

    def around_create(self, obj: Json, *, dry_run: bool) -> AbstractAsyncContextManager[Objections]:
        return nullcontext()

    def around_update(self, obj: Json, old: Json, *, dry_run: bool) -> AbstractAsyncContextManager[Objections]:
        return nullcontext()

    async def after_delete(self, deleted: StoredObject, *, dry_run: bool) -> None:
        """`deleted` is the last state of an object that is gone, or in a dry run would be."""


NO_HOOKS = Hooks()
