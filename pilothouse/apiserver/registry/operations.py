"""Inputs and results of storage operations."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from pilothouse.apiserver.registry.options import WriteOptions
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.machinery.dataclass import dataclass
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
