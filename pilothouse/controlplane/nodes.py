"""The simulated nodes of this server: they start once it is ready, or with the first node that says it is one."""

from __future__ import annotations

import asyncio
import importlib
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from pilothouse.client.idleness import at_work
from pilothouse.controllers.table import enabled
from pilothouse.controlplane.certificates.simulated_kubelet import ensure_kubelet_certificates
from pilothouse.controlplane.loopback import Loopback
from pilothouse.controlplane.options.completion import CompletedOptions

if TYPE_CHECKING:
    from pilothouse.controllers.context import ControllerContext
    from pilothouse.nodes.config import SimulationConfig

PROGRAM = "kubelet"
"""The name under which managedFields record what they change."""


class SimulatedNodes:
    name = "simulated-nodes"
    lease = "pilothouse-simulated-nodes"

    def __init__(self, options: CompletedOptions, loopback: Loopback) -> None:
        simulation = options.simulation
        is_moving = simulation.nodes > 0 or bool(enabled(options.controllers.controllers))
        self.is_wanted = simulation.runs_here and is_moving
        self.client = loopback.client_named(PROGRAM)
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
