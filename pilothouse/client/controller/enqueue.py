"""Handlers that put keys on a queue, which is all that most controllers do with notifications."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from pilothouse.client.cache.handlers import Deleted, ResourceEventHandlerFuncs
from pilothouse.client.cache.keys import deletion_handling_key, last_known_state
from pilothouse.machinery.objects import Json, namespace_of


class KeyQueue(Protocol):
    def add(self, item: str) -> None: ...


def enqueue_keys(queue: KeyQueue) -> ResourceEventHandlerFuncs:
    """Puts the key of whatever was added, changed or deleted on the queue.

    >>> from pilothouse.client import WorkQueue, enqueue_keys
    >>> queue: WorkQueue[str] = WorkQueue()
    >>> enqueue_keys(queue).on_add({"metadata": {"namespace": "default", "name": "web"}}, False)
    >>> await queue.get()
    'default/web'
    """

    def add(obj: Deleted) -> None:
        queue.add(deletion_handling_key(obj))

    return ResourceEventHandlerFuncs(add=add, update=lambda old, new: add(new), delete=add)


def enqueue_mapped(queue: KeyQueue, keys_for: Callable[[Json], Iterable[str]]) -> ResourceEventHandlerFuncs:
    """Puts the keys that a function finds for an object on the queue; after a change, those for the old one too.

    >>> from pilothouse.client import WorkQueue, enqueue_mapped
    >>> queue: WorkQueue[str] = WorkQueue()
    >>> by_node = enqueue_mapped(queue, lambda pod: [pod["spec"]["nodeName"]])
    >>> by_node.on_add({"metadata": {"name": "web"}, "spec": {"nodeName": "n1"}}, False)
    >>> await queue.get()
    'n1'
    """

    def add(obj: Json | None) -> None:
        for key in keys_for(obj) if obj is not None else ():
            queue.add(key)

    def update(old: Json, new: Json) -> None:
        add(old)
        add(new)

    return ResourceEventHandlerFuncs(add=add, update=update, delete=lambda obj: add(last_known_state(obj)))


def enqueue_owner(queue: KeyQueue, kind: str) -> ResourceEventHandlerFuncs:
    """Puts the key of the owner of that kind on the queue, for objects that have one as their controller.

    >>> from pilothouse.client import WorkQueue, enqueue_owner
    >>> queue: WorkQueue[str] = WorkQueue()
    >>> owner = {"kind": "Foo", "name": "f", "controller": True}
    >>> enqueue_owner(queue, "Foo").on_add({"metadata": {"name": "web", "ownerReferences": [owner]}}, False)
    >>> await queue.get()
    'f'
    """

    def owners(obj: Json) -> Iterable[str]:
        namespace = namespace_of(obj)
        for owner in (obj.get("metadata") or {}).get("ownerReferences") or ():
            if owner.get("controller") and owner.get("kind") == kind:
                yield f"{namespace}/{owner['name']}" if namespace else owner["name"]

    return enqueue_mapped(queue, owners)
