"""Adoption of matching orphans and release of objects that no longer match the owner's selector."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeAlias

from pilothouse.client.rest.client import Client
from pilothouse.client.rest.options import PatchType
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kinds.owners import controller_of, controller_ref
from pilothouse.machinery.errors import Invalid, NotFound
from pilothouse.machinery.names import GroupVersionResource
from pilothouse.machinery.objects import Json, labels_of, metadata, name_of, namespace_of, uid_of
from pilothouse.machinery.selectors.labels import Selector
from pilothouse.machinery.status_error import PilothouseError, StatusError

Matches: TypeAlias = Callable[[Json], bool]
Written: TypeAlias = Callable[[Json], None]


class CannotAdopt(PilothouseError):
    """The owner is terminating, or was replaced by another object of the same name."""


class ControllerRefManager:
    """Claims objects of one resource for one owner, in one sync.

    Before the first adoption, `read_owner` reads the owner from the server: the cache may lack a deletion or
    replacement. A terminating owner neither adopts nor releases.
    """

    def __init__(
        self,
        client: Client,
        resource: GroupVersionResource,
        owner: Json,
        selector: Selector,
        *,
        read_owner: Callable[[], Awaitable[Json]],
        finalizers: Sequence[str] = (),
        on_write: Written | None = None,
    ) -> None:
        """`finalizers` are added on adoption and removed on release."""
        self._objects = client.for_resource(resource, namespace=namespace_of(owner))
        self._owner = owner
        self._owner_uid = uid_of(owner)
        self._selector = selector
        self._read_owner = read_owner
        self._finalizers = list(finalizers)
        self._on_write = on_write
        self._may_adopt = False

    async def claim(self, objects: Iterable[Json], matches: Matches | None = None) -> list[Json]:
        """Return the objects controlled by the owner after adoption and release; `matches` further restricts the
        selector.

        Every object is tried; then the first error is raised.
        """
        claimed, errors = [], []
        for obj in objects:
            try:
                if self._is_settled(obj, matches) or await self._claim(obj, matches):
                    claimed.append(obj)
            except (StatusError, CannotAdopt) as error:
                errors.append(error)
        if errors:
            raise errors[0]
        return claimed

    def _is_settled(self, obj: Json, matches: Matches | None) -> bool:
        """Return whether the object is already controlled and still matches (the common case)."""
        reference = controller_of(obj)
        if reference is None or reference.get("uid") != self._owner_uid:
            return False
        return self._selector.matches(labels_of(obj)) and (matches is None or matches(obj))

    async def _claim(self, obj: Json, matches: Matches | None) -> bool:
        reference, owner = controller_of(obj), self._owner
        if reference is not None and reference.get("uid") != uid_of(owner):
            return False
        is_match = self._selector.matches(labels_of(obj)) and (matches is None or matches(obj))
        if reference is not None and is_match:
            return True
        if is_deleting(owner):
            return False
        if reference is not None:
            await self.release(obj)
            return False
        return is_match and not is_deleting(obj) and await self._adopt_if_there(obj)

    async def _adopt_if_there(self, obj: Json) -> bool:
        try:
            await self.adopt(obj)
        except NotFound:
            return False
        return True

    async def adopt(self, obj: Json) -> None:
        """Make the owner the controller of the object. Raises CannotAdopt or StatusError."""
        if not self._may_adopt:
            owner, fresh = self._owner, await self._read_owner()
            action = f"can't adopt {obj.get('kind')} {namespace_of(obj)}/{name_of(obj)} ({uid_of(obj)})"
            where = f"{namespace_of(owner)}/{name_of(owner)}"
            if uid_of(fresh) != uid_of(owner):
                raise CannotAdopt(
                    f"{action}: original {where} is gone: got uid {uid_of(fresh)}, wanted {uid_of(owner)}"
                )
            if deleted := metadata(fresh).get("deletionTimestamp"):
                raise CannotAdopt(f"{action}: {where} has just been deleted at {deleted}")
            self._may_adopt = True
        changed: Json = {"uid": uid_of(obj), "ownerReferences": [controller_ref(self._owner)]}
        if self._finalizers:
            changed["finalizers"] = self._finalizers
        await self._patch(obj, changed)

    async def release(self, obj: Json) -> None:
        """Remove the owner reference; a missing or replaced object is ignored. Raises StatusError."""
        gone = {"$patch": "delete", "uid": uid_of(self._owner)}
        changed: Json = {"uid": uid_of(obj), "ownerReferences": [gone]}
        if self._finalizers:
            changed["$deleteFromPrimitiveList/finalizers"] = self._finalizers
        try:
            await self._patch(obj, changed)
        except (NotFound, Invalid):
            return

    async def _patch(self, obj: Json, changed: Json) -> None:
        written = await self._objects.patch(name_of(obj), {"metadata": changed}, PatchType.STRATEGIC)
        if self._on_write is not None:
            self._on_write(written)
