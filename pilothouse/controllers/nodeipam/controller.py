"""node-ipam-controller: allocates a pod CIDR for each node, with --allocate-node-cidrs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from ipaddress import ip_network

from pilothouse.client.cache.handlers import ResourceEventHandlerFuncs
from pilothouse.client.cache.shared_informer import wait_for_cache_sync
from pilothouse.client.controller import Controller
from pilothouse.client.events.event import NORMAL, EventSource
from pilothouse.client.events.recorder import EventRecorder
from pilothouse.client.rest.options import PatchType
from pilothouse.controllers.context import ControllerContext, with_last_state
from pilothouse.controllers.nodeipam.cidr_set import CIDRsExhausted, Network, cidr_sets
from pilothouse.controllers.resources import NODES
from pilothouse.kinds.deletion import is_deleting
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json, items, name_of, uid_of
from pilothouse.machinery.status_error import StatusError

logger = logging.getLogger(__name__)

_NAME = "cidrallocator_node"
_WORKERS = 30


async def run(context: ControllerContext) -> None:
    if context.config.node_ipam.allocate_node_cidrs:
        await _NodeRanges(context).run()


class _NodeRanges:
    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._nodes = context.informer(NODES)
        self._queue = context.queue(_NAME, str)
        self._recorder = EventRecorder(context.client, EventSource("cidrAllocator"), clock=context.clock)
        self._sets = cidr_sets(context.config.node_ipam)

    async def run(self) -> None:
        """Run the controller. Existing CIDRs are recorded before the first allocation."""
        await wait_for_cache_sync(self._nodes)
        for node in self._nodes.indexer.list():
            self._occupy(node)
        self._nodes.add_event_handler(
            ResourceEventHandlerFuncs(
                add=self._changed,
                update=lambda old, new: self._changed(new),
                delete=with_last_state(lambda node: self._release(ranges_of(node))),
            )
        )
        nodes = Controller(_NAME, self._sync, workers=_WORKERS, queue=self._queue, clock=self._context.clock)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(nodes.run())
            tasks.create_task(self._recorder.run())

    def _changed(self, node: Json) -> None:
        if ranges_of(node):
            self._occupy(node)
        else:
            self._queue.add(name_of(node))

    def _occupy(self, node: Json) -> None:
        for part, cidrs in zip(ranges_of(node), self._sets, strict=False):
            cidrs.occupy(part)

    def _release(self, parts: Iterable[Network]) -> None:
        for part, cidrs in zip(parts, self._sets, strict=False):
            cidrs.release(part)

    async def _sync(self, name: str) -> None:
        node = self._nodes.indexer.get_by_key(name)
        if node is None or is_deleting(node) or ranges_of(node):
            return
        parts: list[Network] = []
        try:
            parts.extend(cidrs.allocate() for cidrs in self._sets)
        except CIDRsExhausted:
            self._release(parts)
            self._tell(node, "CIDRNotAvailable")
            raise
        texts = [str(part) for part in parts]
        patch = {"spec": {"podCIDR": texts[0], "podCIDRs": texts}}
        try:
            await self._context.client.for_resource(NODES).patch(name, patch, PatchType.STRATEGIC)
        except NotFound:
            self._release(parts)
        except StatusError:
            self._release(parts)
            self._tell(node, "CIDRAssignmentFailed")
            raise

    def _tell(self, node: Json, status: str) -> None:
        about = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name_of(node), "uid": uid_of(node)}}
        self._recorder.event(about, NORMAL, status, f"Node {name_of(node)} status is now: {status}")


def ranges_of(node: Json) -> list[Network]:
    """Return the node's podCIDRs; invalid ones are skipped."""
    networks: list[Network] = []
    for text in items(node, "spec", "podCIDRs"):
        try:
            networks.append(ip_network(text))
        except ValueError:
            logger.error("node %s has %r, which is no range of addresses", name_of(node), text)
    return networks
