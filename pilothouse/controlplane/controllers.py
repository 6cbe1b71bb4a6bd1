"""Controllers in the server process, and background work in general.

Background work starts when the server is ready, so that start-up is not delayed, and ends before the server stops.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from pilothouse.apiserver.authn.service_accounts import group_names, user_name
from pilothouse.apiserver.authn.user import ALL_AUTHENTICATED, User
from pilothouse.apiserver.server.hooks import HookContext
from pilothouse.apiserver.server.server import GenericAPIServer
from pilothouse.apiserver.tallies import REGISTRY
from pilothouse.client.clock import cancelled
from pilothouse.client.idleness import at_work
from pilothouse.client.rest.client import Client
from pilothouse.controllers.table import ControllerDescriptor, enabled
from pilothouse.controlplane.loopback import Loopback
from pilothouse.controlplane.options.completion import CompletedOptions
from pilothouse.controlplane.options.controllers import ControllerOptions

if TYPE_CHECKING:
    from pilothouse.controllers.context import ControllerConfig
    from pilothouse.controllers.manager import Election, Run


PROGRAM = "kube-controller-manager"
"""Manager name in managedFields."""
_PROGRAM_USER = User(f"system:{PROGRAM}", groups=(ALL_AUTHENTICATED,))
_NAMESPACE = "kube-system"


class Controllers:
    def __init__(self, options: CompletedOptions, loopback: Loopback) -> None:
        self._options, self._all_options = options.controllers, options
        self._loopback = loopback

    @property
    def are_wanted(self) -> bool:
        return bool(self._chosen)

    @property
    def _chosen(self) -> list[ControllerDescriptor]:
        return enabled(
            self._options.controllers,
            simulation=self._all_options.simulation.nodes > 0,
            has_feature=self._all_options.gates.enabled,
        )

    async def run(self, beside: Sequence[Run] = ()) -> None:
        """Run until cancelled. Functions in `beside` share the informers of the controllers."""
        with at_work("the start of controllers"):
            config = await asyncio.to_thread(_load, self._chosen, self._all_options)
        from pilothouse.controllers.manager import ControllerManager

        own_accounts = self._options.use_service_account_credentials
        manager = ControllerManager(
            self._loopback.client_named(PROGRAM, _PROGRAM_USER if own_accounts else None),
            self._chosen,
            registry=REGISTRY,
            config=config,
            election=election(self._options, self._options.lease_name),
            client_as=self._client_as if own_accounts else None,
            privileged=self._loopback.client_named(PROGRAM),
            beside=beside,
        )
        await manager.run()

    def _client_as(self, account: str) -> Client:
        groups = (*group_names(_NAMESPACE), ALL_AUTHENTICATED)
        return self._loopback.client_named(PROGRAM, User(user_name(_NAMESPACE, account), groups=groups))


def _load(chosen: Sequence[ControllerDescriptor], options: CompletedOptions) -> ControllerConfig:
    """Import the controllers that start at once. Runs in a thread, because the imports would block the event loop."""
    from pilothouse.controllers.manager import load
    from pilothouse.controlplane.controller_config import controller_config

    for descriptor in chosen:
        if not descriptor.concerns:
            load(descriptor)
    return controller_config(options)


def run_beside(server: GenericAPIServer, name: str, run: Callable[[], Awaitable[None]]) -> None:
    """Add hooks that start `run` when the server is ready and cancel `run` before the server stops."""
    work = _Work(server, name, run)
    server.add_post_start_hook(f"start-pilothouse-{name}", work.start)
    server.add_pre_shutdown_hook(f"stop-pilothouse-{name}", work.stop)


def election(options: ControllerOptions, lease_name: str) -> Election | None:
    """Return the election by the lease `lease_name`; None without leader election."""
    from pilothouse.client.leaderelection.elector import ElectionTimes
    from pilothouse.client.leaderelection.lease_lock import new_identity
    from pilothouse.controllers.manager import Election

    if not options.leader_elect:
        return None
    return Election(
        identity=new_identity(),
        namespace=options.lease_namespace,
        name=lease_name,
        times=ElectionTimes(
            lease_duration=options.lease_duration,
            renew_deadline=options.renew_deadline,
            retry_period=options.retry_period,
        ),
    )


class _Work:
    def __init__(self, server: GenericAPIServer, name: str, run: Callable[[], Awaitable[None]]) -> None:
        self._ready = server.lifecycle.has_been_ready
        self._name, self._work = name, run
        self._started = False
        self._stop, self._stopped = asyncio.Event(), asyncio.Event()

    async def start(self, context: HookContext) -> None:
        self._started = True
        context.spawn(self._run(), name=self._name)

    async def stop(self) -> None:
        """Stop the work while requests are still served, so that the lease can be released."""
        self._stop.set()
        if self._started:
            await self._stopped.wait()

    async def _run(self) -> None:
        working = asyncio.ensure_future(self._run_when_ready())
        try:
            await self._stop.wait()
        finally:
            await cancelled(working)
            self._stopped.set()

    async def _run_when_ready(self) -> None:
        await self._ready.wait()
        await self._work()
