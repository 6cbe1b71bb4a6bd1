"""The fleet: nodes created at the start, and all other nodes annotated as simulated.

A deleted node stays deleted until the server restarts, as without a kubelet restart.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from pilothouse.client.cache.handlers import Deleted, ResourceEventHandlerFuncs
from pilothouse.client.cache.keys import last_known_state
from pilothouse.client.rest.errors import ConnectionFailed, InvalidResponse
from pilothouse.controllers.context import ControllerContext
from pilothouse.controllers.resources import NODES
from pilothouse.machinery.errors import AlreadyExists, NotFound
from pilothouse.machinery.event_loop import yield_to_loop
from pilothouse.machinery.objects import Json, labels_of, name_of, resource_version_of
from pilothouse.machinery.status_error import StatusError
from pilothouse.nodes.behavior.behaviors import Behaviors
from pilothouse.nodes.config import SimulationConfig
from pilothouse.nodes.fleet.addresses import NodeAddresses, NoMoreAddresses
from pilothouse.nodes.fleet.leases import Leases
from pilothouse.nodes.fleet.node_object import is_simulated, node_condition_events, node_name
from pilothouse.nodes.fleet.upkeep import Upkeep
from pilothouse.nodes.running.events import NodeEvents
from pilothouse.nodes.stages.stages import Stages

logger = logging.getLogger(__name__)

NODE = "Node"
_STATUS_EVERY = 300.0
_AGAIN = 1.0
_WORKERS = 4
_FAILURES = (StatusError, ConnectionFailed, InvalidResponse, NoMoreAddresses)


class Fleet:
    """`nodes`: the simulated nodes by name. `on_change` callbacks receive the names of added, changed and deleted
    nodes."""

    def __init__(
        self,
        context: ControllerContext,
        config: SimulationConfig,
        behaviors: Behaviors,
        stages: Stages,
        events: NodeEvents,
    ) -> None:
        self._config, self._behaviors, self._stages, self._events = config, behaviors, stages, events
        self._clock, self._client = context.clock, context.client
        self._informer = context.informer(NODES)
        self._addresses = NodeAddresses(config)
        self._upkeep = Upkeep(context, config, behaviors, self._addresses)
        self._queue: asyncio.Queue[str] = asyncio.Queue()
        self._queued: set[str] = set()
        self._reported: dict[str, float] = {}
        self.nodes: dict[str, Json] = {}
        self.on_change: list[Callable[[str], None]] = []

    async def start(self) -> None:
        """Start, and return once all existing nodes are known."""
        handler = ResourceEventHandlerFuncs(add=self._seen, update=lambda old, new: self._seen(new), delete=self._gone)
        registration = self._informer.add_event_handler(handler)
        await registration.wait_synced()

    async def run(self) -> None:
        """Run until cancelled."""
        self._behaviors.on_change.append(self._look_at_all)
        self._stages.on_change.append(self._look_at_all)
        leases = Leases(self._client, self._clock, self._alive, self._config.renew_interval)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._create_own())
            tasks.create_task(leases.run())
            tasks.create_task(self._report())
            for _ in range(_WORKERS):
                tasks.create_task(self._work())

    def labels(self, name: str) -> Mapping[str, str]:
        node = self.nodes.get(name)
        return {} if node is None else labels_of(node)

    def addresses_of(self, name: str) -> list[str]:
        """Return the addresses of a node, allocating if needed. Raises NoMoreAddresses."""
        node = self.nodes.get(name)
        return [] if node is None else [self._addresses.address(node)]

    def is_alive(self, name: str) -> bool:
        """Return whether the node sends heartbeats."""
        node = self.nodes.get(name)
        return node is not None and not self._behaviors.of_node(node).gone

    def _alive(self) -> Iterator[Json]:
        return (node for node in self.nodes.values() if not self._behaviors.of_node(node).gone)

    async def _create_own(self) -> None:
        for number in range(1, self._config.nodes + 1):
            if node_name(number) in self._informer.indexer:
                continue
            try:
                await self._upkeep.create(number)
            except AlreadyExists:
                continue
            except _FAILURES as error:
                logger.error("node %s was not created: %s", node_name(number), error)

    def _seen(self, node: Json) -> None:
        name = name_of(node)
        if is_simulated(node):
            self._keep(node)
            self._look_at(name)
            self._record_events(name)
        elif name in self.nodes:
            self._gone(node)

    def _keep(self, node: Json) -> None:
        """Store the node unless a newer version is known."""
        known = self.nodes.get(name_of(node), node)
        if int(resource_version_of(node)) >= int(resource_version_of(known)):
            self.nodes[name_of(node)] = node
            self._addresses.mark(node)

    def _gone(self, deleted: Deleted) -> None:
        node = last_known_state(deleted)
        if node is None or self.nodes.pop(name_of(node), None) is None:
            return
        self._addresses.give_back(node)
        self._reported.pop(name_of(node), None)
        self._stages.forget(NODE, name_of(node))
        self._record_events(name_of(node))

    def _record_events(self, name: str) -> None:
        for tell in self.on_change:
            tell(name)

    def _look_at_all(self) -> None:
        for name in self.nodes:
            self._look_at(name)
            self._record_events(name)

    def _look_at(self, name: str) -> None:
        if name not in self._queued:
            self._queued.add(name)
            self._queue.put_nowait(name)

    async def _work(self) -> None:
        while True:
            await yield_to_loop()  # yield: many nodes may need no write
            name = await self._queue.get()
            self._queued.discard(name)
            try:
                await self._bring_up(name)
            except NotFound:
                continue
            except _FAILURES as error:
                logger.warning("node %s could not be brought up to date: %s", name, error or type(error).__name__)
                self._clock.call_later(_AGAIN, partial(self._look_at, name))

    async def _bring_up(self, name: str, *, heartbeat: bool = False) -> None:
        node = self.nodes.get(name)
        if node is None or not self.is_alive(name):
            return
        node = await self._upkeep.complete(node)
        if self._stages.drive(NODE):
            node = await self._follow_stages(name, node)
        else:
            before, node = node, await self._upkeep.report(node, heartbeat=heartbeat)
            for event in node_condition_events(before, node):
                self._events.record({**node, "kind": "Node", "apiVersion": "v1"}, name, event)
        if name in self.nodes:
            self._keep(node)

    async def _follow_stages(self, name: str, node: Json) -> Json:
        pending = self._stages.next(NODE, name, node)
        if pending is None:
            return node
        wait = pending.due - self._clock.wall()
        if wait > 0:
            self._clock.call_later(wait, partial(self._look_at, name))
            return node
        return await self._stages.play(NODE, name, node, self._client.for_resource(NODES))

    async def _report(self) -> None:
        """Report every node's status once in five minutes, a few nodes per second."""
        while True:
            await self._clock.sleep(1.0)
            now = self._clock.now()
            names = [name for name in self.nodes if now - self._reported.setdefault(name, now) >= _STATUS_EVERY]
            for name in names[: max(len(self.nodes) // int(_STATUS_EVERY), 1) * 2]:
                self._reported[name] = now
                try:
                    await self._bring_up(name, heartbeat=True)
                except _FAILURES as error:
                    logger.debug("node %s did not report: %s", name, error)
