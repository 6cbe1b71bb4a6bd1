"""Runs a prepared server from its first request to its last.

Start: listen, then run the post-start hooks; the server is ready when they have finished and every check passes.
Stop, in the order of lifecycle.py: turn unready, wait the delay and run the pre-shutdown hooks, take no more
requests but those on their way, let those in flight end, stop what the hooks spawned, end watches, close the
connections, release the rest.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import field
from typing import Any, Protocol, TypeAlias

from pilothouse.apiserver.server.health import READYZ, HealthCheck, run_checks
from pilothouse.apiserver.server.hooks import HookContext, run_post_start_hooks, run_pre_shutdown_hooks
from pilothouse.apiserver.server.run_options import ServerRunOptions
from pilothouse.apiserver.server.server import PreparedAPIServer
from pilothouse.apiserver.serving.state import LAST_CALLS
from pilothouse.machinery.dataclass import dataclass

log = logging.getLogger(__name__)

_SHUTDOWN_AFTER_DRAIN = 2.0
"""Seconds that connections get to close once no request is left on them."""

_READY_POLL = 0.05

Background: TypeAlias = dict[str, Callable[[], Coroutine[Any, Any, None]]]
"""Work to be done, by name, for as long as the server listens."""


class ServingSocket(Protocol):
    """A listener with its connections."""

    @property
    def connections(self) -> int:
        """How many there are."""

    async def start(self) -> None:
        """Returns when connections are accepted; raises OSError when the address can not be had."""

    async def shutdown(self, timeout: float) -> None:
        """Stops listening, gives the connections this long to end, and ends those that do not."""


@dataclass(frozen=True, slots=True)
class RunConfig:
    """Where a server listens, how its requests come to an end, and what runs beside them.

    >>> from pilothouse.apiserver import ListenEndpoint, Response, RunConfig, Server
    >>> async def hello(request):
    ...     return Response(200, b"hello")
    >>> async def drain(seconds):
    ...     pass
    >>> RunConfig([Server(hello, [ListenEndpoint("127.0.0.1", 0)])], drain).run_options.request_timeout
    60.0
    """

    serving: Sequence[ServingSocket]
    drain: Callable[[float], Awaitable[object]]
    """Waits until no request is in flight, but no longer than so many seconds."""
    run_options: ServerRunOptions = field(default_factory=ServerRunOptions)
    background: Background = field(default_factory=dict)
    checks_of_peers: tuple[HealthCheck, ...] = ()
    """Those of its checks that wait for other processes, which serve along with this one."""
    can_serve: Callable[[], None] = lambda: None
    """Called when all other checks pass: it is ready, whatever its peers are."""


class Runner:
    """Runs one prepared server, once.

    >>> import asyncio
    >>> from pilothouse.apiserver import GenericAPIServer, ListenEndpoint, Response, RunConfig, Runner, Server
    >>> async def nobody(request):
    ...     return Response(404)
    >>> async def drain(seconds):
    ...     pass
    >>> prepared = GenericAPIServer("mine", nobody).prepare_run()
    >>> config = RunConfig([Server(prepared.server, [ListenEndpoint("127.0.0.1", 0)])], drain)
    >>> stop = asyncio.Event()
    >>> await Runner(prepared, config).run(stop, ready=stop.set)
    >>> prepared.server.lifecycle.has_been_ready.signaled
    True
    """

    def __init__(self, prepared: PreparedAPIServer, config: RunConfig) -> None:
        self._server = prepared.server
        self._lifecycle = prepared.server.lifecycle
        self._config = config
        self._options = config.run_options
        self._context = HookContext()

    async def run(self, stop: asyncio.Event, *, ready: Callable[[], None]) -> None:
        """Returns after an orderly shutdown. Raises OSError when it can not listen, HookFailed when a hook fails."""
        try:
            for serving in self._config.serving:
                await serving.start()
            for name, work in self._config.background.items():
                self._context.spawn(work(), name=name)
            await self._until_stopped(stop, ready)
            self._lifecycle.shutdown_initiated.signal()
            await asyncio.gather(self._delay(), self._pre_shutdown())
            self._lifecycle.not_accepting_new_request.signal()
            if self._options.shutdown_send_retry_after:
                await self._drain()
                await self._close(_SHUTDOWN_AFTER_DRAIN)
            else:
                await asyncio.gather(self._drain_after_last_call(), self._close(self._options.request_timeout))
        except BaseException:
            await self._close(0)
            raise
        finally:
            await self._context.stop()
            await self._server.destroy()

    async def _until_stopped(self, stop: asyncio.Event, ready: Callable[[], None]) -> None:
        """A hook may still run when the stop comes; one that fails ends the wait."""
        stopping = asyncio.create_task(stop.wait())
        starting = asyncio.create_task(self._become_ready(ready))
        try:
            await asyncio.wait((stopping, starting), return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                starting.result()
            await stopping
        finally:
            for task in (stopping, starting):
                task.cancel()
            await asyncio.gather(stopping, starting, return_exceptions=True)

    async def _become_ready(self, ready: Callable[[], None]) -> None:
        await run_post_start_hooks(self._server.post_start_hooks(), self._context)
        self._lifecycle.mux_and_discovery_complete.signal()
        checks, of_peers = self._server.health_checks(), self._config.checks_of_peers
        await _until_ready([check for check in checks if check not in of_peers])
        self._config.can_serve()
        await _until_ready(of_peers)
        self._lifecycle.has_been_ready.signal()
        ready()

    async def _delay(self) -> None:
        await asyncio.sleep(self._options.shutdown_delay_duration)
        self._lifecycle.after_shutdown_delay_duration.signal()

    async def _pre_shutdown(self) -> None:
        for failure in await run_pre_shutdown_hooks(self._server.pre_shutdown_hooks()):
            log.error("%s", failure)
        self._lifecycle.pre_shutdown_hooks_stopped.signal()

    async def _drain_after_last_call(self) -> None:
        if any(serving.connections for serving in self._config.serving):
            for seconds in LAST_CALLS:
                await asyncio.sleep(seconds)
        await self._drain()

    async def _drain(self) -> None:
        """Watches hold connections open; they end when nobody is left who needs what feeds them."""
        await self._config.drain(self._options.request_timeout)
        self._lifecycle.in_flight_requests_drained.signal()
        await self._context.stop()
        await self._server.drained()

    async def _close(self, timeout: float) -> None:
        await asyncio.gather(*(serving.shutdown(timeout) for serving in self._config.serving))
        self._lifecycle.http_server_stopped_listening.signal()


async def _until_ready(checks: Sequence[HealthCheck]) -> None:
    mine = [check for check in checks if READYZ in check.endpoints]
    while (await run_checks(READYZ, mine, ())).failures:  # noqa: ASYNC110  # a check has no event to wait for
        await asyncio.sleep(_READY_POLL)
