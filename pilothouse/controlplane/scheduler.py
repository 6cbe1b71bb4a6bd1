"""The scheduler of this server: it starts with the first node, and acts as kube-scheduler does."""

from __future__ import annotations

import asyncio
import importlib
from typing import TYPE_CHECKING, Final

from pilothouse.apiserver.authn.user import ALL_AUTHENTICATED, User
from pilothouse.client.idleness import at_work
from pilothouse.controlplane.loopback import Loopback
from pilothouse.controlplane.options.completion import CompletedOptions

if TYPE_CHECKING:
    from pilothouse.controllers.context import ControllerContext

PROGRAM: Final = "kube-scheduler"
"""The name under which managedFields record what it changes, and that of its lease."""
_USER = User(f"system:{PROGRAM}", groups=(ALL_AUTHENTICATED,))


class Scheduler:
    name = "scheduler"
    lease = PROGRAM

    def __init__(self, options: CompletedOptions, loopback: Loopback) -> None:
        self.is_wanted = options.controllers.scheduler
        user = _USER if options.controllers.use_service_account_credentials else None
        self.client = loopback.client_named(PROGRAM, user)

    async def run(self, context: ControllerContext) -> None:
        """Until cancelled."""
        from pilothouse.controllers.manager import first_object
        from pilothouse.controllers.resources import NODES

        await first_object((NODES,), context)
        with at_work("the start of the scheduler"):
            module = await asyncio.to_thread(importlib.import_module, "pilothouse.scheduler.run")
        await module.run(context.acting_through(self.client))
