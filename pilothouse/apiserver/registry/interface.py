"""The protocols of storages: upstream's rest.Storage interfaces.

The protocols that a storage implements decide which verbs its resource has: a `Creator` gets POST, and so on.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from pilothouse.apiserver.http import Request, Response
from pilothouse.apiserver.registry import operations
from pilothouse.apiserver.registry.options import DeleteOptions, GetOptions, ListOptions, WriteOptions
from pilothouse.apiserver.storage.cacher.watcher import CacheWatcher
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json


@runtime_checkable
class Getter(Protocol):
    async def get(self, ctx: operations.RequestContext, name: str, options: GetOptions) -> operations.Result: ...


@runtime_checkable
class Lister(Protocol):
    async def list(self, ctx: operations.RequestContext, options: ListOptions) -> operations.ListResult: ...


@runtime_checkable
class Watcher(Protocol):
    async def watch(self, ctx: operations.RequestContext, options: ListOptions, *, deadline: float) -> CacheWatcher: ...


@runtime_checkable
class Creator(Protocol):
    async def create(
        self, ctx: operations.RequestContext, obj: Json, *, options: WriteOptions, validate: operations.Validate
    ) -> operations.Result: ...


@runtime_checkable
class NamedCreator(Protocol):
    """Creates a subresource under the name in the path, such as pods/binding."""

    async def create_named(
        self,
        ctx: operations.RequestContext,
        name: str,
        obj: Json,
        *,
        options: WriteOptions,
        validate: operations.Validate,
    ) -> operations.Result: ...


@runtime_checkable
class Updater(Protocol):
    async def update(
        self, ctx: operations.RequestContext, name: str, update: operations.UpdateRequest
    ) -> operations.Updated: ...


@runtime_checkable
class Patcher(Getter, Updater, Protocol):
    """A storage that can be read and updated can be patched."""


@runtime_checkable
class GracefulDeleter(Protocol):
    async def delete(
        self, ctx: operations.RequestContext, name: str, *, options: DeleteOptions, validate: operations.Validate
    ) -> operations.Deleted: ...


@runtime_checkable
class CollectionDeleter(Protocol):
    async def delete_collection(
        self,
        ctx: operations.RequestContext,
        *,
        options: DeleteOptions,
        selection: ListOptions,
        validate: operations.Validate,
    ) -> operations.ListResult: ...


@runtime_checkable
class Connecter(Protocol):
    """Takes over the connection: exec, portforward, proxy."""

    methods: frozenset[str]

    async def connect(self, ctx: operations.RequestContext, name: str, request: Request) -> Response: ...


@runtime_checkable
class GetterWithOptions(Connecter, Protocol):
    """Takes over a GET and responds with data that is not an object: logs."""

    get_options: GroupVersionKind
    """The kind whose fields are the query parameters."""
    media_types: tuple[str, ...]
    """The media types of the responses."""


ABILITIES: tuple[type[object], ...] = (
    Getter,
    Lister,
    Watcher,
    Creator,
    NamedCreator,
    Updater,
    Patcher,
    GracefulDeleter,
    CollectionDeleter,
    Connecter,
)
"""The protocols that verbs are derived from."""

_ABILITIES_BY_TYPE: dict[type[object], frozenset[type[object]]] = {}


def abilities_of(storage: object) -> frozenset[type[object]]:
    """Return the protocols that the storage implements. Cached by type: `isinstance` of a protocol is slow."""
    abilities = _ABILITIES_BY_TYPE.get(type(storage))
    if abilities is None:
        abilities = frozenset(ability for ability in ABILITIES if isinstance(storage, ability))
        _ABILITIES_BY_TYPE[type(storage)] = abilities
    return abilities
