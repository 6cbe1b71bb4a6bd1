"""Inputs and results of storage operations, and the context: the request that a call serves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field
from typing import TypeAlias

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.offload import Weight
from pilothouse.apiserver.registry.options import WriteOptions
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json


@dataclass(slots=True)
class RequestContext:
    """Treat as immutable. Not frozen, because freezing triples the construction cost and every request constructs
    one."""

    namespace: str
    resource: GroupResource
    """The resource as the request named it; used in messages."""
    user: User
    warn: Callable[[str], None]
    verb: str = ""
    """The verb as authorization names it: create, update, patch."""
    is_own: bool = False
    """Whether the server itself made the request."""
    collects_garbage: bool = True
    """Whether a garbage collector handles the dependents of deleted objects."""
    delete_workers: int = 1
    """Maximum concurrent deletes of a deletecollection."""
    weight: Weight = field(default_factory=Weight)
    """Shared with the request: reading a large object for an update makes the request heavier."""


Result: TypeAlias = StoredObject | Json
"""A stored object, or an object made for this response (a Status, a Scale, the result of a dry run)."""


def object_of(result: Result) -> Json:
    return result.parse() if isinstance(result, StoredObject) else result


Validate: TypeAlias = Callable[[Json], Awaitable[None]]
"""Validating admission of an object that is about to be created or deleted. Raises to reject."""

ValidateUpdate: TypeAlias = Callable[[Json, Json], Awaitable[None]]
"""Validating admission of an update: (new, old). Raises to reject."""


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
"""Makes the new object from the stored object (None if there is no stored object). Called again with a fresh copy
after a conflict."""


@dataclass(frozen=True, slots=True)
class UpdateRequest:
    make: MakeObject
    options: WriteOptions
    validate_create: Validate
    validate_update: ValidateUpdate
    uid: str = ""
    """If set, the stored object must have this uid."""
    force_allow_create: bool = False
    """Create a missing object even if the strategy does not allow create on update."""


async def unchecked(*_: Json) -> None:
    """Validation for writes without admission: the server's own writes, and writes that were admitted in another
    form."""


def unchecked_update(make: MakeObject, options: WriteOptions) -> UpdateRequest:
    return UpdateRequest(make, options, validate_create=unchecked, validate_update=unchecked)
