"""Hooks around writes that concern more than one object: allocation from a pool, and release.

A create or update runs inside its hook. The hook receives the object before the strategy. If the write fails, the error
propagates through the hook, which then undoes its changes. A hook may yield validation errors: the object is rejected
for these first, then for the errors of the strategy.
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
    """The hooks of one resource. The default hooks are no-ops."""

    def around_create(self, obj: Json, *, dry_run: bool) -> AbstractAsyncContextManager[Objections]:
        return nullcontext()

    def around_update(self, obj: Json, old: Json, *, dry_run: bool) -> AbstractAsyncContextManager[Objections]:
        return nullcontext()

    async def after_delete(self, deleted: StoredObject, *, dry_run: bool) -> None:
        """Called with the last state of a removed object; in a dry run, with the object that would be removed."""


NO_HOOKS = Hooks()
