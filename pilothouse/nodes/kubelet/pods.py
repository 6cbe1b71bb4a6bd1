"""Pod lookup for the simulated kubelets, from an informer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from pilothouse.client.cache.handlers import Deleted, ResourceEventHandlerFuncs
from pilothouse.client.cache.indexer import NAMESPACE_INDEX
from pilothouse.client.cache.keys import last_known_state
from pilothouse.client.cache.shared_informer import SharedIndexInformer
from pilothouse.kinds.pods import node_name
from pilothouse.machinery.objects import Json, name_of, namespace_of, uid_of

_NODE_INDEX: Final = "node of the kubelet"


def _node(pod: Json) -> tuple[str, ...]:
    return (node_name(pod),)


class KnownPods:
    def __init__(self, informer: SharedIndexInformer, gone: Callable[[str], None]) -> None:
        """`gone` is called with the UID of each deleted pod."""
        self._indexer = informer.indexer
        self._gone = gone
        self._waiting: dict[str, set[asyncio.Future[None]]] = {}
        informer.add_indexers({_NODE_INDEX: _node})
        informer.add_event_handler(ResourceEventHandlerFuncs(update=self._updated, delete=self._deleted))

    def get(self, namespace: str, name: str) -> Json | None:
        return self._indexer.get_by_key(f"{namespace}/{name}")

    def on_node(self, node: str) -> Iterable[Json]:
        return self._indexer.by_index(_NODE_INDEX, node)

    def all_in(self, namespace: str) -> Iterable[Json]:
        """Return the pods of a namespace; all pods for ""."""
        return self._indexer.by_index(NAMESPACE_INDEX, namespace) if namespace else self._indexer.list()

    async def changed(self, namespace: str, name: str) -> None:
        """Wait for a change or the deletion of the pod."""
        told: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(f"{namespace}/{name}", set())
        waiting.add(told)
        try:
            await told
        finally:
            waiting.discard(told)
            if not waiting and self._waiting.get(f"{namespace}/{name}") is waiting:
                del self._waiting[f"{namespace}/{name}"]

    def _updated(self, old: Json, new: Json) -> None:
        if uid_of(old) != uid_of(new):
            self._gone(uid_of(old))
        self._changed(new)

    def _changed(self, pod: Json) -> None:
        for told in self._waiting.get(f"{namespace_of(pod)}/{name_of(pod)}", ()):
            if not told.done():
                told.set_result(None)

    def _deleted(self, deleted: Deleted) -> None:
        if (pod := last_known_state(deleted)) is not None:
            self._gone(uid_of(pod))
            self._changed(pod)
