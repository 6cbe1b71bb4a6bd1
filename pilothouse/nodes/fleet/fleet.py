"""All simulated nodes: those that the server makes at its start, and every other that says it is one.

A node that was deleted stays so until the server starts again, as one does whose kubelet is never restarted.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from pilothouse.client.cache.handlers import Deleted, ResourceEventHandlerFuncs
from pilothouse.client.cache.keys import last_known_state
from pilothouse.client.rest.errors import ConnectionFailed, InvalidResponse
from pilothouse.client.rest.options import PatchType
from pilothouse.controllers.context import ControllerContext
from pilothouse.controllers.resources import NODES
from pilothouse.machinery.errors import AlreadyExists, NotFound
from pilothouse.machinery.objects import Json, labels_of, name_of, resource_version_of
from pilothouse.machinery.status_error import StatusError
from pilothouse.nodes.behavior.behaviors import Behaviors
from pilothouse.nodes.config import SimulationConfig
from pilothouse.nodes.fleet.addresses import Addresses, NodeRanges, NoMoreAddresses
from pilothouse.nodes.fleet.leases import Leases
from pilothouse.nodes.fleet.node_object import (
    NOT_READY_TAINT,
    address_of,
    is_simulated,
    labels_to_add,
    new_node,
    node_status,
)
from pilothouse.nodes.stages.stages import Stages

logger = logging.getLogger(__name__)

NODE = "Node"
_STATUS_EVERY = 300.0
_AGAIN = 1.0


class Fleet:
    """`nodes` are the simulated ones; whoever adds to `on_change` hears the names of those that come, change or go."""

    def __init__(
        self, context: ControllerContext, config: SimulationConfig, behaviors: Behaviors, stages: Stages
    ) -> None:
        self._context, self._config, self._behaviors, self._stages = context, config, behaviors, stages
        self._nodes = context.client.for_resource(NODES)
        self._informer = context.informer(NODES)
        self._queue: asyncio.Queue[str] = asyncio.Queue()
        self._queued: set[str] = set()
        self._ranges = NodeRanges(config.cluster_cidr, config.node_cidr_mask_size)
        self._addresses = Addresses(config.node_address_cidr)
        self._reported: dict[str, float] = {}
        self._given: dict[str, str] = {}
        """Addresses that were given to nodes that do not say them yet."""
        self.nodes: dict[str, Json] = {}
        self.on_change: list[Callable[[str], None]] = []

    async def start(self) -> None:
        """Returns when all nodes that there are are known."""
        handler = ResourceEventHandlerFuncs(add=self._seen, update=lambda old, new: self._seen(new), delete=self._gone)
        registration = self._informer.add_event_handler(handler)
        await registration.wait_synced()

    async def run(self) -> None:
        """Until cancelled."""
        self._behaviors.on_change.append(self._look_at_all)
        self._stages.on_change.append(self._look_at_all)
        leases = Leases(self._context.client, self._context.clock, self._alive, self._config.renew_interval)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._create_own())
            tasks.create_task(leases.run())
            tasks.create_task(self._report())
            for _ in range(4):
                tasks.create_task(self._work())

    def labels(self, name: str) -> Mapping[str, str]:
        node = self.nodes.get(name)
        return {} if node is None else labels_of(node)

    def is_alive(self, name: str) -> bool:
        """Whether anything is heard of the node."""
        node = self.nodes.get(name)
        return node is not None and not self._behaviors.of_node(node).gone

    def _alive(self) -> Iterator[Json]:
        return (node for node in self.nodes.values() if not self._behaviors.of_node(node).gone)

    async def _create_own(self) -> None:
        for number in range(1, self._config.nodes + 1):
            node = new_node(number, self._config)
            if name_of(node) in self._informer.indexer:
                continue
            try:
                await self._nodes.create(self._complete(node))
            except AlreadyExists:
                continue
            except (StatusError, ConnectionFailed, InvalidResponse, NoMoreAddresses) as error:
                logger.error("node %s was not created: %s", name_of(node), error)

    def _complete(self, node: Json) -> Json:
        """Raises NoMoreAddresses."""
        cidr, address = self._ranges.take(), self._addresses.take()
        behavior, now = self._behaviors.of_node(node), self._context.clock.wall()
        status = node_status(node, address, behavior, self._config, now)
        return {**node, "spec": {"podCIDR": cidr, "podCIDRs": [cidr]}, "status": status}

    def _seen(self, node: Json) -> None:
        name = name_of(node)
        if not is_simulated(node):
            if name in self.nodes:
                self._gone(node)
            return
        if int(resource_version_of(node)) < int(resource_version_of(self.nodes.get(name, node))):
            return
        self.nodes[name] = node
        self._ranges.mark((node.get("spec") or {}).get("podCIDR") or "")
        self._addresses.mark(address_of(node))
        self._look_at(name)
        self._tell(name)

    def _gone(self, deleted: Deleted) -> None:
        node = last_known_state(deleted)
        if node is None or self.nodes.pop(name_of(node), None) is None:
            return
        self._ranges.give_back((node.get("spec") or {}).get("podCIDR") or "")
        self._addresses.give_back(address_of(node))
        self._addresses.give_back(self._given.pop(name_of(node), ""))
        self._reported.pop(name_of(node), None)
        self._stages.forget(NODE, name_of(node))
        self._tell(name_of(node))

    def _tell(self, name: str) -> None:
        for tell in self.on_change:
            tell(name)

    def _look_at_all(self) -> None:
        for name in self.nodes:
            self._look_at(name)
            self._tell(name)

    def _look_at(self, name: str) -> None:
        if name not in self._queued:
            self._queued.add(name)
            self._queue.put_nowait(name)

    async def _work(self) -> None:
        while True:
            name = await self._queue.get()
            self._queued.discard(name)
            try:
                await self._bring_up(name)
            except NotFound:
                continue
            except (StatusError, ConnectionFailed, InvalidResponse, NoMoreAddresses) as error:
                logger.warning("node %s could not be brought up to date: %s", name, error or type(error).__name__)
                self._context.clock.call_later(_AGAIN, partial(self._look_at, name))

    async def _bring_up(self, name: str, *, heartbeat: bool = False) -> None:
        """Make the object say what a kubelet would have made it say."""
        node = self.nodes.get(name)
        if node is None or not self.is_alive(name):
            return
        behavior = self._behaviors.of_node(node)
        if (patch := self._patch(node, ready=not behavior.not_ready)) is not None:
            await self._nodes.patch(name, patch, PatchType.MERGE)
        if self._stages.drive(NODE):
            await self._follow_stages(name, node)
            return
        address = self.addresses_of(name)[0]
        now = self._context.clock.wall()
        status = node_status(node, address, behavior, self._config, now, heartbeat=heartbeat)
        stored = node.get("status") or {}
        changed = {field: value for field, value in status.items() if stored.get(field) != value}
        if _says_the_same(changed.get("conditions"), stored.get("conditions")) and not heartbeat:
            changed.pop("conditions", None)
        if changed:
            await self._nodes.patch(name, {"status": changed}, PatchType.STRATEGIC, subresource="status")
            self._reported[name] = self._context.clock.now()

    async def _follow_stages(self, name: str, node: Json) -> None:
        pending = self._stages.next(NODE, name, node)
        if pending is None:
            return
        wait = pending.due - self._context.clock.wall()
        if wait > 0:
            self._context.clock.call_later(wait, partial(self._look_at, name))
        else:
            self._seen(await self._stages.play(NODE, name, node, self._nodes))

    def addresses_of(self, name: str) -> list[str]:
        """Return the addresses of a node, which it gets now if it has none. Raises NoMoreAddresses."""
        node = self.nodes.get(name)
        if node is None:
            return []
        if not (address := address_of(node)) and not (address := self._given.get(name, "")):
            address = self._given[name] = self._addresses.take()
        return [address]

    def _patch(self, node: Json, *, ready: bool) -> Json | None:
        patch: Json = {}
        if labels := labels_to_add(node):
            patch["metadata"] = {"labels": labels}
        spec = node.get("spec") or {}
        if not spec.get("podCIDR"):
            cidr = self._ranges.take()
            patch.setdefault("spec", {}).update({"podCIDR": cidr, "podCIDRs": [cidr]})
        taints = spec.get("taints") or ()
        kept = [each for each in taints if each.get("key") != NOT_READY_TAINT]
        if ready and len(kept) != len(taints):
            patch.setdefault("spec", {})["taints"] = kept or None
        return patch or None

    async def _report(self) -> None:
        """Let every node say once in five minutes how it is, a few in each second."""
        while True:
            await self._context.clock.sleep(1.0)
            now = self._context.clock.now()
            names = [name for name in self.nodes if now - self._reported.setdefault(name, now) >= _STATUS_EVERY]
            for name in names[: max(len(self.nodes) // int(_STATUS_EVERY), 1) * 2]:
                self._reported[name] = now
                try:
                    await self._bring_up(name, heartbeat=True)
                except (StatusError, ConnectionFailed, InvalidResponse, NoMoreAddresses) as error:
                    logger.debug("node %s did not report: %s", name, error)


def _says_the_same(wanted: list[Json] | None, stored: list[Json] | None) -> bool:
    """Whether all conditions that are wanted are there as they should be, among any others and in any order."""
    known = {each["type"]: each for each in stored or ()}
    return all(
        (known.get(each["type"]) or {}).get(field) == each[field]
        for each in wanted or ()
        for field in ("status", "reason", "message")
    )
