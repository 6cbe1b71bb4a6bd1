"""An author's functions over a dictionary that a test changes behind the server's back, and the registry over them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

from patience import PATIENCE

from pilothouse.apiserver import Names, Resource, SqliteStore, Strategy, User
from pilothouse.apiserver.registry.operations import RequestContext, Result, object_of, unchecked, unchecked_update
from pilothouse.apiserver.registry.options import DeleteOptions, GetOptions, ListOptions, WriteOptions
from pilothouse.apiserver.storage.cacher.watcher import CacheWatcher
from pilothouse.builder.function_backed.registry import FunctionBackedRegistry, function_backed_registry
from pilothouse.client import Json, name_of, namespace_of
from pilothouse.machinery.names import GroupResource

BOOKS = GroupResource("library.example.com", "books")
RESOURCE = Resource(Names("books", kind="Book"), Strategy(), group=BOOKS.group)


class ReadOnlyShelf:
    """Only `list`."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], Json] = {}
        self.calls: list[str] = []

    def put(self, name: str, title: str, namespace: str = "default", **metadata: Any) -> None:
        """An outside change."""
        self.rows[namespace, name] = {
            "metadata": {"name": name, "namespace": namespace, **metadata},
            "spec": {"title": title},
        }

    def drop(self, name: str, namespace: str = "default") -> None:
        del self.rows[namespace, name]

    async def list(self, namespace: str) -> list[Json]:
        self.calls.append(f"list {namespace}".strip())
        return [row for (owner, _), row in self.rows.items() if namespace in ("", owner)]


class Shelf(ReadOnlyShelf):
    """All functions but `watch`. Keeps the spec and the status of what it is sent, and the metadata named here."""

    keeps: tuple[str, ...] = ()

    async def get(self, name: str, namespace: str) -> Json | None:
        self.calls.append(f"get {name}")
        return self.rows.get((namespace, name))

    async def create(self, obj: Json) -> Json | None:
        self.calls.append(f"create {name_of(obj)}")
        self._keep(obj)
        return None

    async def update(self, obj: Json) -> Json | None:
        self.calls.append(f"update {name_of(obj)}")
        self._keep(obj)
        return None

    async def delete(self, name: str, namespace: str) -> None:
        self.calls.append(f"delete {name}")
        self.drop(name, namespace)

    def _keep(self, obj: Json) -> None:
        meta = obj["metadata"]
        kept = {key: meta[key] for key in ("name", "namespace", *self.keeps) if key in meta}
        content: Json = {key: obj[key] for key in ("spec", "status") if key in obj}
        self.rows[namespace_of(obj), name_of(obj)] = deepcopy({"metadata": kept, **content})


class Served:
    """The registry of an author's objects, used as requests use it."""

    def __init__(self, own: FunctionBackedRegistry, store: SqliteStore) -> None:
        self.own = own
        self.store = store
        self.storage: Any = own.storage

    async def get(self, name: str, namespace: str = "default") -> Json:
        found: Json = (await self.storage.get(context(namespace), name, GetOptions())).parse()
        return found

    async def list(self, namespace: str = "", **options: Any) -> list[Json]:
        result = await self.storage.list(context(namespace), ListOptions(**options))
        return [stored.parse() for stored in result.objects]

    async def titles(self, namespace: str = "") -> dict[str, str]:
        return {name_of(book): book["spec"]["title"] for book in await self.list(namespace)}

    async def create(self, book: Json, *, dry_run: bool = False) -> Json:
        ctx, options = context(namespace_of(book) or "default"), WriteOptions(dry_run=dry_run)
        result: Result = await self.storage.create(ctx, book, options=options, validate=unchecked)
        return object_of(result)

    async def change(self, name: str, change: Callable[[Json], None], *, version: str | None = None) -> Json:
        async def changed(current: Json | None) -> Json:
            assert current is not None
            change(current)
            if version is not None:
                current["metadata"]["resourceVersion"] = version
            return current

        ctx = context("default")
        updated = await self.storage.update(ctx, name, unchecked_update(changed, WriteOptions()))
        return object_of(updated.result)

    async def delete(self, name: str, options: DeleteOptions | None = None) -> None:
        await self.storage.delete(context("default"), name, options=options or DeleteOptions(), validate=unchecked)

    async def watch(self, namespace: str = "", **options: Any) -> CacheWatcher:
        deadline = asyncio.get_running_loop().time() + PATIENCE
        watcher: CacheWatcher = await self.storage.watch(context(namespace), ListOptions(**options), deadline=deadline)
        return watcher


def context(namespace: str) -> RequestContext:
    return RequestContext(namespace, BOOKS, User("reader"), warn=print)


def book(name: str, title: str = "Emma", **metadata: Any) -> Json:
    return {"metadata": {"name": name, "namespace": "default", **metadata}, "spec": {"title": title}}


def retitled(title: str) -> Callable[[Json], None]:
    def change(obj: Json) -> None:
        obj["spec"]["title"] = title

    return change


@asynccontextmanager
async def served(folder: Path, functions: object, **options: Any) -> AsyncIterator[Served]:
    """For as long as the block lasts."""
    store = await SqliteStore.open(folder, compaction_interval=0)
    resource = options.pop("resource", RESOURCE)
    own = function_backed_registry(resource, store, functions, root="/registry", **{"poll_interval": 0.01, **options})
    await own.registry.start()
    try:
        async with asyncio.timeout(PATIENCE):
            await own.registry.wait_ready()
            yield Served(own, store)
    finally:
        await own.registry.stop()
        await store.close()


async def next_event(watcher: CacheWatcher) -> tuple[str, Json]:
    async with asyncio.timeout(PATIENCE):
        event = await anext(watcher)
    return event.type.value, event.object.parse()


async def next_title(watcher: CacheWatcher) -> tuple[str, str, str]:
    kind, obj = await next_event(watcher)
    return kind, name_of(obj), obj["spec"]["title"]
