"""What a resource does around its writes: in order, undone on failure, and told of every end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.registry.operations import RequestContext, UpdateRequest
from pilothouse.apiserver.registry.options import DeleteOptions, WriteOptions
from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.registry.strategy import Hooks, Strategy
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.apiserver.storage.sqlite.store import SqliteStore
from pilothouse.machinery.errors import AlreadyExists, Invalid
from pilothouse.machinery.field import Errors, required, root
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json

CONTEXT = RequestContext("default", GroupResource("", "things"), User("tester"), warn=print)


class ThingStrategy(Strategy):
    allow_create_on_update = True

    def validate(self, obj: Json) -> Errors:
        if not obj.get("taken"):
            yield required(root("taken"))
        if obj.get("broken"):
            yield required(root("broken"))

    def validate_update(self, obj: Json, old: Json) -> Errors:
        return self.validate(obj)


class Ledger(Hooks):
    """Writes down what happens."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def around_create(self, obj: Json, *, dry_run: bool) -> AbstractAsyncContextManager[None]:
        return self._around("create", obj)

    def around_update(self, obj: Json, old: Json, *, dry_run: bool) -> AbstractAsyncContextManager[None]:
        return self._around("update", obj)

    async def after_delete(self, deleted: StoredObject, *, dry_run: bool) -> None:
        self.lines.append(f"delete{' (dry run)' if dry_run else ''}")

    @asynccontextmanager
    async def _around(self, what: str, obj: Json) -> AsyncIterator[None]:
        obj["taken"] = True
        try:
            yield
        except Exception:
            self.lines.append(f"{what} undone")
            raise
        self.lines.append(f"{what} done")


@pytest.fixture
async def things(tmp_path: Path) -> AsyncIterator[RegistryStore]:
    store = await SqliteStore.open(tmp_path)
    registry = RegistryStore(Resource(Names("things", kind="Thing"), ThingStrategy()), store)
    registry.hooks = Ledger()
    yield registry
    await store.close()


def thing(**fields: object) -> Json:
    finalizers = fields.pop("finalizers", [])
    return {"metadata": {"name": "a", "namespace": "default", "finalizers": finalizers}, **fields}


async def create(things: RegistryStore, **fields: object) -> None:
    await things.create(CONTEXT, thing(**fields), options=WriteOptions(), validate=_allow)


async def update(things: RegistryStore, **fields: object) -> None:
    async def made(_: Json | None) -> Json:
        return thing(**fields)

    asked = UpdateRequest(made, WriteOptions(), validate_create=_allow, validate_update=_allow_update)
    await things.update(CONTEXT, "a", asked)


async def delete(things: RegistryStore, *, dry_run: bool = False) -> None:
    await things.delete(CONTEXT, "a", options=DeleteOptions(dry_run=dry_run), validate=_allow)


def lines(things: RegistryStore) -> list[str]:
    assert isinstance(things.hooks, Ledger)
    return things.hooks.lines


async def test_what_a_hook_fills_in_is_there_when_the_object_is_checked(things: RegistryStore) -> None:
    await create(things)
    assert lines(things) == ["create done"]


async def test_a_refused_write_is_undone(things: RegistryStore) -> None:
    with pytest.raises(Invalid):
        await create(things, broken=True)
    await create(things)
    with pytest.raises(Invalid):
        await update(things, broken=True)
    assert lines(things) == ["create undone", "create done", "update undone"]


async def test_a_name_that_is_taken_is_undone(things: RegistryStore) -> None:
    await create(things)
    with pytest.raises(AlreadyExists):
        await create(things)
    assert lines(things) == ["create done", "create undone"]


async def test_an_update_that_creates_is_a_create(things: RegistryStore) -> None:
    await update(things)
    assert lines(things) == ["create done"]


async def test_the_last_finalizer_ends_the_object_instead_of_updating_it(things: RegistryStore) -> None:
    await create(things, finalizers=["example.com/hold"])
    await delete(things)
    assert lines(things) == ["create done"]
    await update(things)
    assert lines(things) == ["create done", "update undone", "delete"]


async def test_a_dry_run_of_a_delete_says_so(things: RegistryStore) -> None:
    await create(things)
    await delete(things, dry_run=True)
    await delete(things)
    assert lines(things) == ["create done", "delete (dry run)", "delete"]


async def _allow(_: Json) -> None:
    return


async def _allow_update(_: Json, __: Json) -> None:
    return
