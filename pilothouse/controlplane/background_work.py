"""Work that a server does beside answering: begun when it is ready, so that it delays nothing, ended before it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from pilothouse.apiserver.server.hooks import HookContext
from pilothouse.apiserver.server.server import GenericAPIServer
from pilothouse.client.clock import cancelled
from pilothouse.controlplane.options.controllers import ControllerOptions

if TYPE_CHECKING:
    from pilothouse.controllers.manager import Election


def run_beside(server: GenericAPIServer, name: str, run: Callable[[], Awaitable[None]]) -> None:
    """Add the hooks that run it, from when the server has been ready until it stops; it is then cancelled."""
    work = _Work(server, name, run)
    server.add_post_start_hook(f"start-pilothouse-{name}", work.start)
    server.add_pre_shutdown_hook(f"stop-pilothouse-{name}", work.stop)


def election(options: ControllerOptions, lease_name: str) -> Election | None:
    """Return how to be elected by the lease of this name; None where nobody else could run."""
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
        """While requests are still answered: what was begun is ended, and a lease given back."""
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
