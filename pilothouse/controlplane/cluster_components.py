"""Cluster components in the server process: controllers, scheduler, simulated nodes.

Without leader election the components share one set of informers, so that each object is cached once. With leader
election each component has its own lease, so that a kube-scheduler can take over while the controllers stay.
"""

from __future__ import annotations

import asyncio
import importlib
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pilothouse.apiserver.authn.user import ALL_AUTHENTICATED, User
from pilothouse.apiserver.server.server import GenericAPIServer
from pilothouse.apiserver.tallies import REGISTRY
from pilothouse.client.idleness import at_work
from pilothouse.controllers.table import enabled
from pilothouse.controlplane.certificates.ensure import ensure_kubelet_certificates
from pilothouse.controlplane.controllers import Controllers, election, run_beside
from pilothouse.controlplane.loopback import Loopback
from pilothouse.controlplane.options.completion import CompletedOptions

if TYPE_CHECKING:
    from pilothouse.controllers.context import ControllerContext


def install_cluster_components(server: GenericAPIServer, options: CompletedOptions, loopback: Loopback) -> None:
    """Add the hooks that run the enabled components."""
    controllers = Controllers(options, loopback)
    parts = [part for part in (Scheduler(options, loopback), SimulatedNodes(options, loopback)) if part.is_wanted]
    if not options.controllers.leader_elect:
        if controllers.are_wanted or parts:
            run_beside(server, "controllers", lambda: controllers.run(beside=[part.run for part in parts]))
        return
    if controllers.are_wanted:
        run_beside(server, "controllers", controllers.run)
    for part in parts:
        run_beside(server, part.name, partial(_run_alone, part, options))


async def _run_alone(part: Scheduler | SimulatedNodes, options: CompletedOptions) -> None:
    from pilothouse.controllers.manager import ControllerManager

    elected = election(options.controllers, part.lease)
    await ControllerManager(part.client, (), registry=REGISTRY, election=elected, beside=[part.run]).run()


KUBELET_PROGRAM = "kubelet"
"""Manager name in managedFields."""


class SimulatedNodes:
    name = "simulated-nodes"
    lease = "pilothouse-simulated-nodes"

    def __init__(self, options: CompletedOptions, loopback: Loopback) -> None:
        simulation = options.simulation
        is_moving = simulation.nodes > 0 or bool(enabled(options.controllers.controllers))
        self.is_wanted = simulation.runs_here and is_moving
        self.client = loopback.client_named(KUBELET_PROGRAM)
        self._options = options

    async def run(self, context: ControllerContext) -> None:
        """Run until cancelled. Without --nodes, wait for the first simulated node."""
        if not self._options.simulation.nodes:
            await _first_simulated_node(context)
        with at_work("the start of simulated nodes"):
            # The import is slow, and must not block the event loop.
            await asyncio.to_thread(importlib.import_module, "pilothouse.nodes.simulation")
            kubelet = await asyncio.to_thread(ensure_kubelet_certificates, Path(self._options.pilothouse.data_dir))
        from pilothouse.nodes import simulation
        from pilothouse.nodes.config import SimulationConfig

        values = asdict(self._options.simulation)
        config = SimulationConfig(**{name: value for name, value in values.items() if name != "runs_here"})
        await simulation.run(context.acting_through(self.client), config, kubelet)


async def _first_simulated_node(context: ControllerContext) -> None:
    """Wait until a Node has the annotation pilothouse.dev/simulated."""
    from pilothouse.client.cache.handlers import ResourceEventHandlerFuncs
    from pilothouse.controllers.resources import NODES
    from pilothouse.machinery.objects import annotations_of

    seen = asyncio.Event()

    def look(node: dict[str, object]) -> None:
        if annotations_of(node).get("pilothouse.dev/simulated") == "true":
            seen.set()

    nodes = context.informer(NODES)
    looking = nodes.add_event_handler(ResourceEventHandlerFuncs(add=look, update=lambda old, new: look(new)))
    await seen.wait()
    nodes.remove_event_handler(looking)


SCHEDULER_PROGRAM: Final = "kube-scheduler"
"""Manager name in managedFields, and name of the lease."""
_USER = User(f"system:{SCHEDULER_PROGRAM}", groups=(ALL_AUTHENTICATED,))


class Scheduler:
    name = "scheduler"
    lease = SCHEDULER_PROGRAM

    def __init__(self, options: CompletedOptions, loopback: Loopback) -> None:
        self.is_wanted = options.controllers.scheduler
        user = _USER if options.controllers.use_service_account_credentials else None
        self.client = loopback.client_named(SCHEDULER_PROGRAM, user)

    async def run(self, context: ControllerContext) -> None:
        """Wait for the first node, then schedule until cancelled."""
        from pilothouse.controllers.manager import first_object
        from pilothouse.controllers.resources import NODES

        await first_object((NODES,), context)
        with at_work("the start of the scheduler"):
            module = await asyncio.to_thread(importlib.import_module, "pilothouse.scheduler.run")
        await module.run(context.acting_through(self.client))
