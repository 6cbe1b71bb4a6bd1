"""What moves in a cluster: the controllers, the scheduler, and simulated nodes.

Where nobody else could run them they share one term, and with it their informers: each object is kept once for all of
them. On a store that is shared with others each is elected by a lease of its own, so that a kube-scheduler can take
over while the controllers stay.
"""

from __future__ import annotations

import asyncio
import importlib
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pilothouse.apiserver.metrics import REGISTRY
from pilothouse.apiserver.server.server import GenericAPIServer
from pilothouse.client.idleness import at_work
from pilothouse.controllers.table import enabled
from pilothouse.controlplane.certificates.ensure import ensure_kubelet_certificates
from pilothouse.controlplane.controllers import Controllers, election, run_beside
from pilothouse.controlplane.loopback import Loopback
from pilothouse.controlplane.options.completion import CompletedOptions

if TYPE_CHECKING:
    from pilothouse.controllers.context import ControllerContext
    from pilothouse.nodes.config import SimulationConfig
from typing import TYPE_CHECKING, Final

from pilothouse.apiserver.authn.user import ALL_AUTHENTICATED, User

if TYPE_CHECKING:
    from pilothouse.controllers.context import ControllerContext


def install_cluster_components(server: GenericAPIServer, options: CompletedOptions, loopback: Loopback) -> None:
    """Add the hooks that run them; none to a server in which nothing moves but what clients move."""
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
"""The name under which managedFields record what they change."""


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
        """Until cancelled."""
        if not self._options.simulation.nodes:
            await _first_simulated_node(context)
        with at_work("the start of simulated nodes"):
            await asyncio.to_thread(importlib.import_module, "pilothouse.nodes.simulation")  # requests do not wait
            kubelet = await asyncio.to_thread(ensure_kubelet_certificates, Path(self._options.pilothouse.data_dir))
        from pilothouse.nodes import simulation

        await simulation.run(context.acting_through(self.client), _config(self._options), kubelet)


def _config(options: CompletedOptions) -> SimulationConfig:
    from pilothouse.nodes.config import SimulationConfig

    given = asdict(options.simulation)
    return SimulationConfig(**{name: value for name, value in given.items() if name != "runs_here"})


async def _first_simulated_node(context: ControllerContext) -> None:
    """Returns when there is one."""
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
"""The name under which managedFields record what it changes, and that of its lease."""
_USER = User(f"system:{SCHEDULER_PROGRAM}", groups=(ALL_AUTHENTICATED,))


class Scheduler:
    name = "scheduler"
    lease = SCHEDULER_PROGRAM

    def __init__(self, options: CompletedOptions, loopback: Loopback) -> None:
        self.is_wanted = options.controllers.scheduler
        user = _USER if options.controllers.use_service_account_credentials else None
        self.client = loopback.client_named(SCHEDULER_PROGRAM, user)

    async def run(self, context: ControllerContext) -> None:
        """Until cancelled."""
        from pilothouse.controllers.manager import first_object
        from pilothouse.controllers.resources import NODES

        await first_object((NODES,), context)
        with at_work("the start of the scheduler"):
            module = await asyncio.to_thread(importlib.import_module, "pilothouse.scheduler.run")
        await module.run(context.acting_through(self.client))
