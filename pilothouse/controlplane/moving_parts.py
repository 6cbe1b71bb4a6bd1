"""What moves in a cluster: the controllers, the scheduler, and simulated nodes.

Where nobody else could run them they share one term, and with it their informers: each object is kept once for all of
them. On a store that is shared with others each is elected by a lease of its own, so that a kube-scheduler can take
over while the controllers stay.
"""

from __future__ import annotations

from functools import partial

from pilothouse.apiserver.metrics import REGISTRY
from pilothouse.apiserver.server.server import GenericAPIServer
from pilothouse.controlplane.background_work import election, run_beside
from pilothouse.controlplane.controllers import Controllers
from pilothouse.controlplane.loopback import Loopback
from pilothouse.controlplane.nodes import SimulatedNodes
from pilothouse.controlplane.options.completion import CompletedOptions
from pilothouse.controlplane.scheduler import Scheduler


def install_moving_parts(server: GenericAPIServer, options: CompletedOptions, loopback: Loopback) -> None:
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
