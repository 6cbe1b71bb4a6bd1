"""ttl-controller: annotates nodes with the TTL of kubelet caches for secrets and config maps, which grows with the
cluster size."""

from __future__ import annotations

import math

from pilothouse.client.cache.handlers import Deleted, ResourceEventHandlerFuncs
from pilothouse.client.controller import Controller
from pilothouse.client.rest.options import PatchType
from pilothouse.controllers.context import ControllerContext
from pilothouse.controllers.resources import NODES
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json, annotations_of, name_of

TTL_ANNOTATION = "node.alpha.kubernetes.io/ttl"
_WORKERS = 5


@dataclass(frozen=True, slots=True)
class _Step:
    """A cluster size range with its TTL. Ranges overlap, so that a flapping node does not change all annotations."""

    smallest: float
    largest: float
    seconds: int


_STEPS = (
    _Step(0, 100, 0),
    _Step(90, 500, 15),
    _Step(450, 1000, 30),
    _Step(900, 2000, 60),
    _Step(1800, math.inf, 300),
)


class ClusterSize:
    def __init__(self) -> None:
        self._nodes = 0
        self._step = 0

    @property
    def seconds(self) -> int:
        return _STEPS[self._step].seconds

    def grow(self) -> None:
        self._nodes += 1
        if self._nodes > _STEPS[self._step].largest:
            self._step += 1

    def shrink(self) -> None:
        self._nodes -= 1
        if self._nodes < _STEPS[self._step].smallest:
            self._step -= 1


async def run(context: ControllerContext) -> None:
    queue, nodes, size = context.queue("ttlcontroller", str), context.informer(NODES), ClusterSize()

    def changed(node: Json) -> None:
        if annotations_of(node).get(TTL_ANNOTATION) != str(size.seconds):
            queue.add(name_of(node))

    def added(node: Json) -> None:
        size.grow()
        changed(node)

    def deleted(_: Deleted) -> None:
        size.shrink()

    nodes.add_event_handler(ResourceEventHandlerFuncs(add=added, update=lambda old, new: changed(new), delete=deleted))

    async def sync(name: str) -> None:
        node = nodes.indexer.get_by_key(name)
        wanted = str(size.seconds)
        if node is None or annotations_of(node).get(TTL_ANNOTATION) == wanted:
            return
        patch = {"metadata": {"annotations": {TTL_ANNOTATION: wanted}}}
        try:
            await context.client.for_resource(NODES).patch(name, patch, PatchType.STRATEGIC)
        except NotFound:
            return

    controller = Controller("ttlcontroller", sync, caches=(nodes,), workers=_WORKERS, queue=queue, clock=context.clock)
    await controller.run()
