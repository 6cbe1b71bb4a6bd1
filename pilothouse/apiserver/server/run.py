"""Runs a prepared server from the first request to the last (upstream's NonBlockingRun).

Start: listen, then run the post-start hooks; the server is ready when they have finished and every check passes. Stop,
in the order of lifecycle.py: become unready, wait for the shutdown delay and the pre-shutdown hooks, reject new
requests, drain requests in flight, stop the tasks of hooks, end watches, close connections, release resources.
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
"""Seconds for idle connections to close after the drain."""

_READY_POLL = 0.05

Background: TypeAlias = dict[str, Callable[[], Coroutine[Any, Any, None]]]
"""name -> task that runs while the server listens"""


class ServingSocket(Protocol):
    """A listener and its connections."""

    @property
    def connections(self) -> int:
        """The number of connections."""

    async def start(self) -> None:
        """Start to accept connections. Raises OSError if the address is unavailable."""

    async def shutdown(self, timeout: float) -> None:
        """Stop listening, wait up to `timeout` for connections to end, and close the rest."""


@dataclass(frozen=True, slots=True)
class RunConfig:
    """The sockets of a server, its drain function and its background tasks.

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
    """Waits until no request is in flight, with a timeout in seconds."""
    run_options: ServerRunOptions = field(default_factory=ServerRunOptions)
    background: Background = field(default_factory=dict)
    checks_of_peers: tuple[HealthCheck, ...] = ()
    """Checks that depend on other processes of this server."""
    can_serve: Callable[[], None] = lambda: None
    """Called when all checks except those of peers pass."""


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
        """Run until `stop`, and return after an orderly shutdown. Raises OSError if it cannot listen, HookFailed if
        a hook fails."""
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
        """Wait for `stop`. A hook may still run then; a failed hook ends the wait."""
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
        """End watches, which hold connections open. Their event sources are no longer needed."""
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
