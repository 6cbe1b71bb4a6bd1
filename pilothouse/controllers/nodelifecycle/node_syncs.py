"""Syncs of single nodes: NoSchedule taints from conditions, and deprecated labels."""

from __future__ import annotations

from pilothouse.client.cache.handlers import ResourceEventHandlerFuncs
from pilothouse.client.controller import Controller
from pilothouse.client.rest.options import PatchType
from pilothouse.controllers.context import ControllerContext
from pilothouse.controllers.nodelifecycle.taints import change_taints, no_schedule_changes
from pilothouse.controllers.resources import NODES
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json, labels_of, name_of

_NAME = "node_lifecycle_controller"
_WORKERS = 8
_OLD_LABELS = {
    "kubernetes.io/os": "beta.kubernetes.io/os",
    "kubernetes.io/arch": "beta.kubernetes.io/arch",
}


class NodeSyncs:
    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._nodes = context.informer(NODES)
        self._queue = context.queue(_NAME, str)
        self._nodes.add_event_handler(
            ResourceEventHandlerFuncs(add=self._changed, update=lambda old, new: self._changed(new))
        )

    async def run(self) -> None:
        caches, clock = (self._nodes,), self._context.clock
        controller = Controller(_NAME, self._sync, caches=caches, workers=_WORKERS, queue=self._queue, clock=clock)
        await controller.run()

    def _changed(self, node: Json) -> None:
        """Enqueue only nodes that need a change: heartbeats are frequent and rarely matter."""
        if any(no_schedule_changes(node)) or missing_labels(node):
            self._queue.add(name_of(node))

    async def _sync(self, name: str) -> None:
        node = self._nodes.indexer.get_by_key(name)
        if node is None:
            return
        client = self._context.client
        add, remove = no_schedule_changes(node)
        try:
            if add or remove:
                await change_taints(client, node, add, remove, self._context.clock.wall())
            if labels := missing_labels(node):
                patch = {"metadata": {"labels": labels}}
                await client.for_resource(NODES).patch(name, patch, PatchType.STRATEGIC)
        except NotFound:
            return


def missing_labels(node: Json) -> dict[str, str]:
    """Return deprecated labels that are missing or differ from their successors."""
    labels = labels_of(node)
    wanted = {old: labels[new] for new, old in _OLD_LABELS.items() if new in labels}
    return {name: value for name, value in wanted.items() if labels.get(name) != value}
