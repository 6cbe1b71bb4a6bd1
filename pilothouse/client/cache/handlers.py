"""Event handlers of an informer: synchronous or asynchronous callbacks, called one at a time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias

from pilothouse.client.cache.keys import DeletedFinalStateUnknown, last_known_state
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

MaybeAwaitable: TypeAlias = Awaitable[None] | None
Deleted: TypeAlias = Json | DeletedFinalStateUnknown


class ResourceEventHandler(Protocol):
    """Receiver of notifications. Objects belong to the cache: copy before modifying.

    >>> from pilothouse.client import ResourceEventHandler, ResourceEventHandlerFuncs
    >>> handler: ResourceEventHandler = ResourceEventHandlerFuncs(add=print)
    >>> handler.on_add({"metadata": {"name": "a"}}, True)
    {'metadata': {'name': 'a'}}
    """

    def on_add(self, obj: Json, is_in_initial_list: bool) -> MaybeAwaitable:
        """Handle an object that was not in the cache."""

    def on_update(self, old: Json, new: Json) -> MaybeAwaitable:
        """Handle a changed object, or an unchanged object during a resync."""

    def on_delete(self, obj: Deleted) -> MaybeAwaitable:
        """Handle a deleted object. The state may be outdated."""


@dataclass(frozen=True, slots=True)
class ResourceEventHandlerFuncs:
    """Handler built from optional functions. Events without a function are ignored.

    >>> from pilothouse.client import ResourceEventHandlerFuncs, name_of
    >>> handler = ResourceEventHandlerFuncs(delete=lambda obj: print("gone:", name_of(obj)))
    >>> handler.on_delete({"metadata": {"name": "a"}})
    gone: a
    """

    add: Callable[[Json], MaybeAwaitable] | None = None
    update: Callable[[Json, Json], MaybeAwaitable] | None = None
    delete: Callable[[Deleted], MaybeAwaitable] | None = None

    def on_add(self, obj: Json, is_in_initial_list: bool) -> MaybeAwaitable:
        """Call `add` if set."""
        return self.add(obj) if self.add else None

    def on_update(self, old: Json, new: Json) -> MaybeAwaitable:
        """Call `update` if set."""
        return self.update(old, new) if self.update else None

    def on_delete(self, obj: Deleted) -> MaybeAwaitable:
        """Call `delete` if set."""
        return self.delete(obj) if self.delete else None


@dataclass(frozen=True, slots=True)
class FilteringResourceEventHandler:
    """Forwards events of objects that satisfy a predicate.

    An object that starts to satisfy the predicate is forwarded as added; an object that ceases to, as deleted.

    >>> from pilothouse.client import FilteringResourceEventHandler, ResourceEventHandlerFuncs, name_of
    >>> mine = FilteringResourceEventHandler(lambda obj: name_of(obj) == "a", ResourceEventHandlerFuncs(add=print))
    >>> mine.on_add({"metadata": {"name": "b"}}, False)
    >>> mine.on_add({"metadata": {"name": "a"}}, False)
    {'metadata': {'name': 'a'}}
    """

    passes: Callable[[Json], bool]
    handler: ResourceEventHandler

    def on_add(self, obj: Json, is_in_initial_list: bool) -> MaybeAwaitable:
        """Forward if the object satisfies the predicate."""
        return self.handler.on_add(obj, is_in_initial_list) if self.passes(obj) else None

    def on_update(self, old: Json, new: Json) -> MaybeAwaitable:
        """Forward as update, add or delete, by the predicate on the old and on the new state."""
        before, after = self.passes(old), self.passes(new)
        if before and after:
            return self.handler.on_update(old, new)
        if after:
            return self.handler.on_add(new, False)
        return self.handler.on_delete(old) if before else None

    def on_delete(self, obj: Deleted) -> MaybeAwaitable:
        """Forward if the last known state satisfied the predicate."""
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
