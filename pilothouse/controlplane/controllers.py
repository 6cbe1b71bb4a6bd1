"""The controllers of this server: started once it is ready, so that they never delay it, and stopped before it is."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pilothouse.apiserver.authn.service_accounts import group_names, user_name
from pilothouse.apiserver.authn.user import ALL_AUTHENTICATED, User
from pilothouse.apiserver.metrics import REGISTRY
from pilothouse.apiserver.server.hooks import HookContext
from pilothouse.apiserver.server.server import GenericAPIServer
from pilothouse.client.clock import cancelled
from pilothouse.client.rest.client import Client
from pilothouse.controllers.descriptors import ControllerDescriptor, enabled
from pilothouse.controlplane.loopback import Loopback
from pilothouse.controlplane.options.completion import CompletedOptions

if TYPE_CHECKING:
    from pilothouse.controllers.context import ControllerConfig
    from pilothouse.controllers.manager import Election

PROGRAM = "kube-controller-manager"
"""The name under which managedFields record what they change."""
_PROGRAM_USER = User(f"system:{PROGRAM}", groups=(ALL_AUTHENTICATED,))
_NAMESPACE = "kube-system"


def install_controllers(server: GenericAPIServer, options: CompletedOptions, loopback: Loopback) -> None:
    """Add the hooks that run the controllers; none to a server that runs no controller."""
    if enabled(options.controllers.controllers):
        controllers = _Controllers(server, options, loopback)
        server.add_post_start_hook("start-pilothouse-controllers", controllers.start)
        server.add_pre_shutdown_hook("stop-pilothouse-controllers", controllers.stop)


class _Controllers:
    def __init__(self, server: GenericAPIServer, options: CompletedOptions, loopback: Loopback) -> None:
        self._ready = server.lifecycle.has_been_ready
        self._options, self._all_options = options.controllers, options
        self._loopback = loopback
        self._started = False
        self._stop, self._stopped = asyncio.Event(), asyncio.Event()

    async def start(self, context: HookContext) -> None:
        self._started = True
        context.spawn(self._run(), name="controllers")

    async def stop(self) -> None:
        """While requests are still answered: what was begun is ended, and the lease given back."""
        self._stop.set()
        if self._started:
            await self._stopped.wait()

    async def _run(self) -> None:
        managing = asyncio.ensure_future(self._manage())
        try:
            await self._stop.wait()
        finally:
            await cancelled(managing)
            self._stopped.set()

    async def _manage(self) -> None:
        await self._ready.wait()
        chosen = enabled(self._options.controllers)
        config = await asyncio.to_thread(_load, chosen, self._all_options)
        from pilothouse.controllers.manager import ControllerManager

        own_accounts = self._options.use_service_account_credentials
        manager = ControllerManager(
            self._loopback.client_named(PROGRAM, _PROGRAM_USER if own_accounts else None),
            chosen,
            registry=REGISTRY,
            config=config,
            election=self._election(),
            client_as=self._client_as if own_accounts else None,
        )
        await manager.run()

    def _client_as(self, account: str) -> Client:
        groups = (*group_names(_NAMESPACE), ALL_AUTHENTICATED)
        return self._loopback.client_named(PROGRAM, User(user_name(_NAMESPACE, account), groups=groups))

    def _election(self) -> Election | None:
        from pilothouse.client.leaderelection.elector import ElectionTimes
        from pilothouse.client.leaderelection.lease_lock import new_identity
        from pilothouse.controllers.manager import Election

        options = self._options
        if not options.leader_elect:
            return None
        return Election(
            identity=new_identity(),
            namespace=options.lease_namespace,
            name=options.lease_name,
            times=ElectionTimes(
                lease_duration=options.lease_duration,
                renew_deadline=options.renew_deadline,
                retry_period=options.retry_period,
            ),
        )


def _load(chosen: Sequence[ControllerDescriptor], options: CompletedOptions) -> ControllerConfig:
    """Imports those that start at once beside the requests of a ready server: on the event loop they would wait."""
    from pilothouse.controllers.manager import load
    from pilothouse.controlplane.controller_config import controller_config

    for descriptor in chosen:
        if not descriptor.concerns:
            load(descriptor)
    return controller_config(options)
