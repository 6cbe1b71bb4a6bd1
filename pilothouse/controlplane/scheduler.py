"""The scheduler of this server: it starts with the first node, and acts as kube-scheduler does.

It holds a lease of its own, so that a kube-scheduler can take over while the controllers stay.
"""

from __future__ import annotations

from pilothouse.apiserver.authn.user import ALL_AUTHENTICATED, User
from pilothouse.apiserver.metrics import REGISTRY
from pilothouse.apiserver.server.server import GenericAPIServer
from pilothouse.controllers.descriptors import ControllerDescriptor
from pilothouse.controllers.resources import NODES
from pilothouse.controlplane.beside_the_server import election, run_beside
from pilothouse.controlplane.loopback import Loopback
from pilothouse.controlplane.options.completion import CompletedOptions

PROGRAM = "kube-scheduler"
"""The name under which managedFields record what it changes, and that of its lease."""
_USER = User(f"system:{PROGRAM}", groups=(ALL_AUTHENTICATED,))
_SCHEDULER = ControllerDescriptor(PROGRAM, "run", package="pilothouse.scheduler", concerns=(NODES,))


def install_scheduler(server: GenericAPIServer, options: CompletedOptions, loopback: Loopback) -> None:
    """Add the hooks that run it, if this server is to schedule."""

    async def run() -> None:
        from pilothouse.controllers.manager import ControllerManager

        user = _USER if options.controllers.use_service_account_credentials else None
        client, chosen = loopback.client_named(PROGRAM, user), election(options.controllers, PROGRAM)
        await ControllerManager(client, (_SCHEDULER,), registry=REGISTRY, election=chosen).run()

    if options.controllers.scheduler:
        run_beside(server, "scheduler", run)
