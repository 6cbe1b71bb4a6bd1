"""The abilities of storages. They decide which verbs a resource has: one that can `create` gets POST, and so on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeAlias, runtime_checkable

from pilothouse.apiserver.http import Request, Response
from pilothouse.apiserver.registry.context import RequestContext
from pilothouse.apiserver.registry.options import DeleteOptions, GetOptions, ListOptions, WriteOptions
from pilothouse.apiserver.storage.cacher.watcher import CacheWatcher
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json

Result: TypeAlias = StoredObject | Json
"""An object as it is stored, or one that was made for this answer (a Status, a Scale, a dry run)."""


def object_of(result: Result) -> Json:
    return result.parse() if isinstance(result, StoredObject) else result


Validate: TypeAlias = Callable[[Json], Awaitable[None]]
"""Admission's last word on an object that is about to be created or deleted. Raises to refuse."""

ValidateUpdate: TypeAlias = Callable[[Json, Json], Awaitable[None]]
"""The same for (new, old)."""


@dataclass(frozen=True, slots=True)
class ListResult:
    objects: Sequence[StoredObject]
    revision: int
    continue_token: str = ""
    remaining: int | None = None


@dataclass(frozen=True, slots=True)
class Updated:
    result: Result
    created: bool = False


@dataclass(frozen=True, slots=True)
class Deleted:
    result: Result
    immediately: bool = True


MakeObject: TypeAlias = Callable[[Json | None], Awaitable[Json]]
"""The new object from the stored one (None where there is none yet). It may be called again after a conflict, and gets
a fresh copy each time."""


@dataclass(frozen=True, slots=True)
class UpdateRequest:
    make: MakeObject
    options: WriteOptions
    validate_create: Validate
    validate_update: ValidateUpdate
    uid: str = ""
    """When set, the stored object must have this uid."""
    force_allow_create: bool = False
    """An object that is not there is created, even where the strategy does not allow that."""


async def unchecked(*_: Json) -> None:
    """Validates what admission has no say in: what the server does itself, or has admitted as something else."""


def unchecked_update(make: MakeObject, options: WriteOptions) -> UpdateRequest:
    return UpdateRequest(make, options, validate_create=unchecked, validate_update=unchecked)


@runtime_checkable
class Getter(Protocol):
    async def get(self, ctx: RequestContext, name: str, options: GetOptions) -> Result: ...


@runtime_checkable
class Lister(Protocol):
    async def list(self, ctx: RequestContext, options: ListOptions) -> ListResult: ...


@runtime_checkable
class Watcher(Protocol):
    async def watch(self, ctx: RequestContext, options: ListOptions, *, deadline: float) -> CacheWatcher: ...


@runtime_checkable
class Creator(Protocol):
    async def create(self, ctx: RequestContext, obj: Json, *, options: WriteOptions, validate: Validate) -> Result: ...


@runtime_checkable
class NamedCreator(Protocol):
    """Creates under a name that the path gives: subresources such as pods/binding."""

    async def create_named(
        self, ctx: RequestContext, name: str, obj: Json, *, options: WriteOptions, validate: Validate
    ) -> Result: ...


@runtime_checkable
class Updater(Protocol):
    async def update(self, ctx: RequestContext, name: str, update: UpdateRequest) -> Updated: ...


@runtime_checkable
class Patcher(Getter, Updater, Protocol):
    """Whatever can be read and updated can be patched."""


@runtime_checkable
class GracefulDeleter(Protocol):
    async def delete(
        self, ctx: RequestContext, name: str, *, options: DeleteOptions, validate: Validate
    ) -> Deleted: ...


@runtime_checkable
class CollectionDeleter(Protocol):
    async def delete_collection(
        self, ctx: RequestContext, *, options: DeleteOptions, selection: ListOptions, validate: Validate
    ) -> ListResult: ...


@runtime_checkable
class Connecter(Protocol):
    """Takes the request over: exec, portforward, proxy."""

    methods: frozenset[str]

    async def connect(self, ctx: RequestContext, name: str, request: Request) -> Response: ...


@runtime_checkable
class GetterWithOptions(Connecter, Protocol):
    """Takes a GET over and answers something else than an object, as asked for in the query: logs."""

    get_options: GroupVersionKind
    """The kind whose fields are the query parameters."""
    media_types: tuple[str, ...]
    """The media types of its answers."""


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
"""Those that verbs come from."""
