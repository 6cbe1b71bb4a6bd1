"""The notifications of a client of an informer: one at a time, through plain functions or coroutines."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias

from pilothouse.client.cache.keys import DeletedFinalStateUnknown, last_known_state
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

MaybeAwaitable: TypeAlias = Awaitable[None] | None
Deleted: TypeAlias = Json | DeletedFinalStateUnknown


class ResourceEventHandler(Protocol):
    """The objects belong to the cache: a handler that wants to change one copies it first.

    >>> from pilothouse.client import ResourceEventHandler, ResourceEventHandlerFuncs
    >>> handler: ResourceEventHandler = ResourceEventHandlerFuncs(add=print)
    >>> handler.on_add({"metadata": {"name": "a"}}, True)
    {'metadata': {'name': 'a'}}
    """

    def on_add(self, obj: Json, is_in_initial_list: bool) -> MaybeAwaitable:
        """There is an object that was not in the cache."""

    def on_update(self, old: Json, new: Json) -> MaybeAwaitable:
        """An object has changed, or it is time to look at it again."""

    def on_delete(self, obj: Deleted) -> MaybeAwaitable:
        """An object is gone; what is known of it may be old."""


@dataclass(frozen=True, slots=True)
class ResourceEventHandlerFuncs:
    """A handler made of functions; what is left out is not told.

    >>> from pilothouse.client import ResourceEventHandlerFuncs, name_of
    >>> handler = ResourceEventHandlerFuncs(delete=lambda obj: print("gone:", name_of(obj)))
    >>> handler.on_delete({"metadata": {"name": "a"}})
    gone: a
    """

    add: Callable[[Json], MaybeAwaitable] | None = None
    update: Callable[[Json, Json], MaybeAwaitable] | None = None
    delete: Callable[[Deleted], MaybeAwaitable] | None = None

    def on_add(self, obj: Json, is_in_initial_list: bool) -> MaybeAwaitable:
        """Call `add`, if there is one."""
        return self.add(obj) if self.add else None

    def on_update(self, old: Json, new: Json) -> MaybeAwaitable:
        """Call `update`, if there is one."""
        return self.update(old, new) if self.update else None

    def on_delete(self, obj: Deleted) -> MaybeAwaitable:
        """Call `delete`, if there is one."""
        return self.delete(obj) if self.delete else None


@dataclass(frozen=True, slots=True)
class FilteringResourceEventHandler:
    """Tells another handler only of objects that pass: one that begins to pass is added, one that ceases is deleted.

    >>> from pilothouse.client import FilteringResourceEventHandler, ResourceEventHandlerFuncs, name_of
    >>> mine = FilteringResourceEventHandler(lambda obj: name_of(obj) == "a", ResourceEventHandlerFuncs(add=print))
    >>> mine.on_add({"metadata": {"name": "b"}}, False)
    >>> mine.on_add({"metadata": {"name": "a"}}, False)
    {'metadata': {'name': 'a'}}
    """

    passes: Callable[[Json], bool]
    handler: ResourceEventHandler

    def on_add(self, obj: Json, is_in_initial_list: bool) -> MaybeAwaitable:
        """Pass it on if the object passes."""
        return self.handler.on_add(obj, is_in_initial_list) if self.passes(obj) else None

    def on_update(self, old: Json, new: Json) -> MaybeAwaitable:
        """Pass it on; an object that begins to pass is new, one that ceases to is gone."""
        before, after = self.passes(old), self.passes(new)
        if before and after:
            return self.handler.on_update(old, new)
        if after:
            return self.handler.on_add(new, False)
        return self.handler.on_delete(old) if before else None

    def on_delete(self, obj: Deleted) -> MaybeAwaitable:
        """Pass it on if the object passed when it was last seen."""
        state = last_known_state(obj)
        return self.handler.on_delete(obj) if state is not None and self.passes(state) else None


@dataclass(slots=True)
class AddNotification:
    obj: Json
    is_in_initial_list: bool

    def deliver(self, handler: ResourceEventHandler) -> MaybeAwaitable:
        return handler.on_add(self.obj, self.is_in_initial_list)


@dataclass(slots=True)
class UpdateNotification:
    old: Json
    new: Json

    def deliver(self, handler: ResourceEventHandler) -> MaybeAwaitable:
        return handler.on_update(self.old, self.new)


@dataclass(slots=True)
class DeleteNotification:
    obj: Deleted

    def deliver(self, handler: ResourceEventHandler) -> MaybeAwaitable:
        return handler.on_delete(self.obj)


Notification: TypeAlias = AddNotification | UpdateNotification | DeleteNotification
