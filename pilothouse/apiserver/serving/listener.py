"""A listening socket: accepts connections, performs the TLS handshake, and selects the protocol.

Connections over the limit are closed before the handshake. Failed handshakes are counted and dropped. When the socket
closes, pending connections are still accepted, and told to reconnect elsewhere instead of being reset.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Final, TypeAlias

from prometheus_client import Counter

from pilothouse.apiserver.serving.http1 import Http1Connection
from pilothouse.apiserver.serving.limits import keep_alive
from pilothouse.apiserver.serving.state import ServingState
from pilothouse.apiserver.tallies import REGISTRY

if TYPE_CHECKING:
    from pilothouse.apiserver.serving.http2_connection import Http2Connection


TLS_HANDSHAKE_ERRORS = Counter(
    "apiserver_tls_handshake_errors_total",
    "[ALPHA] Number of requests dropped with 'TLS handshake error from' error",
    registry=REGISTRY,
)


log = logging.getLogger(__name__)

CurrentContext: TypeAlias = Callable[[str], ssl.SSLContext]
"""Return the TLS context for a new connection to this local address."""

BACKLOG: Final = 2048
_BATCH: Final = 64
_LAST_GREETINGS: Final = 1.0
"""Seconds for handshakes after the socket has closed."""
_SHUTDOWN_TIMEOUT: Final = 5.0
_PAUSE: Final = 1.0
"""Seconds before accepting again after the process ran out of file descriptors."""
_OUT_OF_FILES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class Listener:
    def __init__(self, sock: socket.socket, state: ServingState, tls: CurrentContext | None) -> None:
        self._socket = sock
        self._state = state
        self._tls = tls
        self._greeting: set[asyncio.Task[None]] = set()  # handshakes in progress
        self._loop = asyncio.get_running_loop()
        self._accepting: asyncio.Task[None] | None = None  # for event loops without add_reader

    @property
    def address(self) -> tuple[str, int]:
        host, port = self._socket.getsockname()[:2]
        return host, port

    def open(self) -> None:
        """Start accepting. The event loop of Windows has no add_reader, and accepts connections singly."""
        try:
            self._loop.add_reader(self._socket.fileno(), self._accept)
        except NotImplementedError:
            self._accepting = self._loop.create_task(self._accept_singly())

    def _stop_accepting(self) -> None:
        if self._accepting is None:
            self._loop.remove_reader(self._socket.fileno())
        else:
            self._accepting.cancel()

    def close(self) -> None:
        """Accept the pending connections, then close the socket."""
        if self._socket.fileno() >= 0:
            self._stop_accepting()
            self._accept(BACKLOG)
            self._socket.close()

    async def greeted(self) -> None:
        """Wait for handshakes in progress, up to a timeout."""
        if self._greeting:
            await asyncio.wait(self._greeting, timeout=_LAST_GREETINGS)
        self._cut_greetings()

    def abort(self) -> None:
        """Close the socket and all handshakes in progress."""
        if self._socket.fileno() >= 0:
            self._stop_accepting()
            self._socket.close()
        self._cut_greetings()

    def _cut_greetings(self) -> None:
        for task in self._greeting:
            task.cancel()

    def _accept(self, most: int = _BATCH) -> None:
        for _ in range(most):
            try:
                client, _ = self._socket.accept()
            except (BlockingIOError, ConnectionAbortedError, InterruptedError):
                return
            except OSError as error:
                log.error("Cannot accept connections: %s", error)
                # Without file descriptors the socket stays readable, and the loop would spin.
                if error.errno in _OUT_OF_FILES:
                    self._loop.remove_reader(self._socket.fileno())
                    self._loop.call_later(_PAUSE, self._reopen)
                return
            self._take(client)

    async def _accept_singly(self) -> None:
        while True:
            try:
                client, _ = await self._loop.sock_accept(self._socket)
            except ConnectionError:  # disconnected before the accept
                continue
            except OSError as error:
                log.error("Cannot accept connections: %s", error)
                await asyncio.sleep(_PAUSE)
            else:
                self._take(client)

    def _reopen(self) -> None:
        if self._socket.fileno() >= 0:
            self.open()

    def _take(self, client: socket.socket) -> None:
        limit = self._state.limits.connections
        if limit and len(self._state.connections) + len(self._greeting) >= limit:
            client.close()
            return
        client.setblocking(False)
        keep_alive(client)
        task = self._loop.create_task(self._greet(client))
        self._greeting.add(task)
        task.add_done_callback(self._greeting.discard)

    async def _greet(self, client: socket.socket) -> None:
        greeting = asyncio.current_task()
        assert greeting is not None

        def negotiation() -> Negotiation:
            return Negotiation(self._state, self._loop, lambda: self._greeting.discard(greeting))

        limits = self._state.limits
        try:
            context = self._tls(client.getsockname()[0]) if self._tls else None
            await self._loop.connect_accepted_socket(
                negotiation,
                client,
                ssl=context,
                ssl_handshake_timeout=limits.handshake_timeout if context else None,
                ssl_shutdown_timeout=_SHUTDOWN_TIMEOUT if context else None,
            )
        except OSError as error:  # including ssl.SSLError, ConnectionResetError and TimeoutError
            TLS_HANDSHAKE_ERRORS.inc()
            log.debug("TLS handshake failed: %s", error)


class Negotiation(asyncio.Protocol):
    """Placeholder protocol until the handshake has negotiated the protocol."""

    def __init__(self, state: ServingState, loop: asyncio.AbstractEventLoop, settled: Callable[[], None]) -> None:
        self._state = state
        self._loop = loop
        self._settled = settled

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._settled()
        tls = transport.get_extra_info("ssl_object")
        http2 = tls is not None and tls.selected_alpn_protocol() == "h2"
        protocol = (_http2_connection() if http2 else Http1Connection)(self._state, self._loop)
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        if self._state.draining:
            protocol.drain()


@cache
def _http2_connection() -> type[Http2Connection]:
    """Import HTTP/2 with its first connection, to speed up the start."""
    from pilothouse.apiserver.serving.http2_connection import Http2Connection

    return Http2Connection
