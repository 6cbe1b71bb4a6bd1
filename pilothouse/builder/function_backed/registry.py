"""A resource whose objects live in the author's functions.

class Books:                                    # only `list`: get, list and watch are served
    async def list(self, namespace):
        return [{"metadata": {"name": isbn}, "spec": {"title": title}} for isbn, title in await rows()]

books = function_backed_registry(BOOKS, store, Books(), root="/registry")
"""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Final

import orjson

from pilothouse.apiserver.registry.errors import map_storage_errors
from pilothouse.apiserver.registry.operations import ListResult, RequestContext
from pilothouse.apiserver.registry.options import GetOptions, ListOptions
from pilothouse.apiserver.registry.resource import Resource
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.registry.stored_resource import keys_of
from pilothouse.apiserver.registry.view import BareView, RegistryView
from pilothouse.apiserver.storage.cacher.watcher import CacheWatcher
from pilothouse.apiserver.storage.delegating import DelegatingStore, store_of
from pilothouse.apiserver.storage.errors import KeyExists, KeyNotFound, RevisionConflict
from pilothouse.apiserver.storage.interface import DEFAULT_ROOT, Entry, Revision, Store
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.builder.function_backed.following import Following
from pilothouse.builder.function_backed.functions import Answer, AnswerReader, Functions
from pilothouse.builder.function_backed.mirror import Mirror
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

_NOT_HISTORICAL = ("", "0")


class MirroredRegistry(RegistryStore):
    """Registry that refreshes the mirror before reads, also in its views (status). Historical reads use the mirror
    only.
    """

    def __init__(
        self,
        resource: Resource,
        mirror: Mirror,
        *,
        root: str,
        on_read: Callable[[Json], None] | None,
        poll_interval: float,
    ) -> None:
        super().__init__(resource, WriteThroughStore(mirror), root=root, on_read=on_read)
        self._mirror = mirror
        self._following = Following(mirror, is_watched=lambda: self.watcher_count > 0, interval=poll_interval)

    async def start(self) -> None:
        await super().start()
        self._following.start()

    async def stop(self) -> None:
        await self._following.stop()
        await super().stop()

    async def get(self, ctx: RequestContext, name: str, options: GetOptions) -> StoredObject:
        with map_storage_errors(ctx.resource, name):
            await self._mirror.refresh_one(self._namespace(ctx), name)
        return await super().get(ctx, name, options)

    async def list(self, ctx: RequestContext, options: ListOptions) -> ListResult:
        if options.resource_version in _NOT_HISTORICAL and not options.continue_token:
            await self._refresh(ctx)
        return await super().list(ctx, options)

    async def watch(self, ctx: RequestContext, options: ListOptions, *, deadline: float) -> CacheWatcher:
        if options.resource_version in _NOT_HISTORICAL and options.send_initial_events is not False:
            await self._refresh(ctx)
        return await super().watch(ctx, options, deadline=deadline)

    async def _refresh(self, ctx: RequestContext) -> None:
        with map_storage_errors(ctx.resource):
            await self._mirror.refresh(self._namespace(ctx))

    def _namespace(self, ctx: RequestContext) -> str:
        return ctx.namespace if self.keys.namespaced else ""


@dataclass(frozen=True, slots=True)
class FunctionBackedRegistry:
    """One resource of an author. `registry` is used like any registry."""

    registry: MirroredRegistry
    mirror: Mirror

    @property
    def storage(self) -> FunctionBackedStorage:
        """Storage for the installer, with the verbs that the functions allow."""
        return self.storage_of(self.registry)

    def storage_of(self, view: RegistryStore) -> FunctionBackedStorage:
        """Return the storage of a view of the registry (`with_strategy`)."""
        return storage_type(self.mirror.functions.given)(view)


def function_backed_registry(
    resource: Resource,
    store: Store,
    functions: object,
    *,
    root: str = DEFAULT_ROOT,
    on_read: Callable[[Json], None] | None = None,
    poll_interval: float = 1.0,
) -> FunctionBackedRegistry:
    """Return the registry of objects that live in `functions`, an object with some of

        async get(name, namespace)      the object; None or NotFound if it does not exist
        async list(namespace)           the objects of a namespace, of all for ""; required for list and watch
        async create(obj), update(obj)  the stored object, or None if it is stored as sent
        async delete(name, namespace)
        watch()                         an async iterator: an object or a pair (type, object) signals a change of this
                                        object; any other item signals a change of any object

    Objects are JSON with metadata.name, and metadata.namespace if the resource is namespaced. `store` keeps, under
    `root`, the metadata that the author does not keep, and assigns resourceVersions. Without `watch`, `list` is called
    every `poll_interval` seconds while clients watch. Raises TypeError if `functions` has neither get nor list.
    """
    reader = AnswerReader(resource, keys_of(resource, root), on_read)
    mirror = Mirror(store_of(store, resource.group_resource), Functions(functions, reader))
    registry = MirroredRegistry(resource, mirror, root=root, on_read=on_read, poll_interval=poll_interval)
    return FunctionBackedRegistry(registry, mirror)


_NEEDED: Final[dict[str, frozenset[str]]] = {
    # verb                functions
    "get": frozenset({"get"}),
    "list": frozenset({"list"}),
    "watch": frozenset({"list"}),
    "create": frozenset({"create"}),
    "update": frozenset({"update"}),
    "delete": frozenset({"delete"}),
    "delete_collection": frozenset({"list", "delete"}),
}


class FunctionBackedStorage(BareView):
    """Storage without verbs. Subclasses have verbs of `RegistryView`."""


_types: dict[frozenset[str], type[FunctionBackedStorage]] = {}


def storage_type(functions: Set[str]) -> type[FunctionBackedStorage]:
    """Return the storage class for a set of functions, cached. `list` implies get."""
    able = functions | {"get"} if "list" in functions else functions
    verbs = frozenset(verb for verb, needed in _NEEDED.items() if needed <= able)
    if verbs not in _types:
        _types[verbs] = type(
            FunctionBackedStorage.__name__,
            (FunctionBackedStorage,),
            {verb: getattr(RegistryView, verb) for verb in verbs},
        )
    return _types[verbs]


class WriteThroughStore(DelegatingStore):
    """Store of one resource. Reads and writes of a key refresh the key first, so that no decision uses stale state.

    Errors of the author's functions are raised (functions.py).
    """

    def __init__(self, mirror: Mirror) -> None:
        super().__init__(mirror.store)
        self._mirror = mirror
        self._functions = mirror.functions

    async def get(self, key: str) -> Entry | None:
        await self._mirror.refresh_key(key)
        return await self._store.get(key)

    async def create(self, key: str, value: bytes, *, ttl: int = 0) -> Entry:
        await self._mirror.refresh_key(key)
        async with self._mirror.order.writing(key):
            if await self._store.get(key) is not None:
                raise KeyExists(key)
            answer = await self._functions.create(key, orjson.loads(value))
            return await self._store.create(key, await self._stored_value(answer, value), ttl=ttl)

    async def update(self, key: str, value: bytes, *, expected: Revision, ttl: int = 0) -> Entry:
        """Update a key. Changes of metadata that only the mirror keeps do not reach the author."""
        async with self._mirror.order.writing(key):
            current = await self._expected(key, expected)
            if await self._mirror.comparer.concerns_author(value, current.value):
                answer = await self._functions.update(key, orjson.loads(value))
                value = await self._stored_value(answer, value)
            return await self._store.update(key, value, expected=expected, ttl=ttl)

    async def delete(self, key: str, *, expected: Revision) -> Entry:
        async with self._mirror.order.writing(key):
            await self._expected(key, expected)
            await self._functions.delete(key)
            self._mirror.comparer.forget(key)
            return await self._store.delete(key, expected=expected)

    async def _expected(self, key: str, expected: Revision) -> Entry:
        """Check the revision before the author's function runs: a write that fails later must have no effect."""
        current = await self._store.get(key)
        if current is None:
            raise KeyNotFound(key)
        if current.modified != expected:
            raise RevisionConflict(f"{key} is at revision {current.modified}, not {expected}")
        return current

    async def _stored_value(self, answer: Answer | None, value: bytes) -> bytes:
        return value if answer is None else await self._mirror.comparer.stored_value(answer, value)
