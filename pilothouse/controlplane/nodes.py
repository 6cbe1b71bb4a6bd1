"""The simulated nodes of this server: they start once it is ready, or with the first node that says it is one."""

from __future__ import annotations

import asyncio
import importlib
import logging
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from pilothouse.apiserver.metrics import REGISTRY
from pilothouse.apiserver.server.server import GenericAPIServer
from pilothouse.client.clock import REAL_CLOCK
from pilothouse.client.wait import Backoff
from pilothouse.controlplane.beside_the_server import election, run_beside
from pilothouse.controlplane.certificates.simulated_kubelet import ensure_kubelet_certificates
from pilothouse.controlplane.loopback import Loopback
from pilothouse.controlplane.options.completion import CompletedOptions

if TYPE_CHECKING:
    from pilothouse.client.rest.client import Client
    from pilothouse.nodes.config import SimulationConfig

logger = logging.getLogger(__name__)

PROGRAM = "kubelet"
"""The name under which managedFields record what they change."""
_LEASE = "pilothouse-simulated-nodes"
_PAUSE = Backoff(duration=0.5, factor=2.0, jitter=0.5, steps=10, cap=30.0)
_CALM = 120.0


def install_simulated_nodes(server: GenericAPIServer, options: CompletedOptions, loopback: Loopback) -> None:
    """Add the hooks that run the simulation; none in a process that leaves it to another."""
    if options.simulation.runs_here:
        nodes = _SimulatedNodes(options, loopback.client_named(PROGRAM))
        run_beside(server, "simulated-nodes", nodes.run)


class _SimulatedNodes:
    def __init__(self, options: CompletedOptions, client: Client) -> None:
        self._options = options
        self._client = client

    async def run(self) -> None:
        """Until cancelled."""
        if not self._options.simulation.nodes:
            await _first_simulated_node(self._client)
        pause = _PAUSE.delays_with_reset(_CALM, REAL_CLOCK)
        while True:
            try:
                await self._simulate_as_leader()
            except Exception:
                logger.exception("the simulation failed; it starts again")
            await asyncio.sleep(pause())

    async def _simulate_as_leader(self) -> None:
        """On a store that several servers share, one of them simulates."""
        from pilothouse.client.leaderelection.elector import LeaderElector
        from pilothouse.client.leaderelection.lease_lock import LeaseLock

        how = election(self._options.controllers, _LEASE)
        if how is None:
            await self._simulate()
        else:
            lock = LeaseLock(self._client, namespace=how.namespace, name=how.name, identity=how.identity)
            await LeaderElector(lock, times=how.times).run(self._simulate)

    async def _simulate(self) -> None:
        await asyncio.to_thread(importlib.import_module, "pilothouse.nodes.simulation")  # requests do not wait for it
        kubelet = await asyncio.to_thread(ensure_kubelet_certificates, Path(self._options.pilothouse.data_dir))
        from pilothouse.controllers.context import ControllerContext
        from pilothouse.nodes import simulation

        context = ControllerContext(self._client, REGISTRY)
        try:
            await simulation.run(context, _config(self._options), kubelet)
        finally:
            await context.close()


def _config(options: CompletedOptions) -> SimulationConfig:
    from pilothouse.nodes.config import SimulationConfig

    given = asdict(options.simulation)
    return SimulationConfig(**{name: value for name, value in given.items() if name != "runs_here"})


async def _first_simulated_node(client: Client) -> None:
    """Returns when there is one. Costs nothing but a watch until then."""
    from pilothouse.client.cache.handlers import ResourceEventHandlerFuncs
    from pilothouse.client.cache.informer_factory import SharedInformerFactory
    from pilothouse.machinery.names import GroupVersionResource
    from pilothouse.machinery.objects import annotations_of

    seen = asyncio.Event()

    def look(node: dict[str, object]) -> None:
        if annotations_of(node).get("pilothouse.dev/simulated") == "true":
            seen.set()

    async with SharedInformerFactory(client) as factory:
        informer = factory.for_resource(GroupVersionResource("", "v1", "nodes"))
        informer.add_event_handler(ResourceEventHandlerFuncs(add=look, update=lambda old, new: look(new)))
        factory.start()
        await seen.wait()
