"""HTTP/1.1 server connections: sequential requests from a parser, and response writing.

Guarantees: oversized heads get 431, malformed heads 400, and transfer codings other than chunked 501. No byte is lost
or attributed to another request. Bodies are read at the pace of the handler. If a response precedes the end of its
request body, the connection closes after the client had a moment to read the response.
"""

from __future__ import annotations

import asyncio
from typing import Final

from pilothouse.apiserver.http import Request
from pilothouse.apiserver.http1.framing import HEAD_END, BadMessage, Framing
from pilothouse.apiserver.http1.parser import END, RequestHead
from pilothouse.apiserver.serving.exchange import BadTarget, parse_target
from pilothouse.apiserver.serving.http1_exchange import STATUS_LINES, UNREAD, Http1Exchange
from pilothouse.apiserver.serving.state import LAST_CALLS, NEVER, ServingState
from pilothouse.apiserver.serving.transport import ClientConnection

_REFUSALS: Final = {501: b"Unsupported transfer encoding"}
"""net/http's texts that differ from the status line."""


class Http1Connection(ClientConnection):
    def __init__(self, state: ServingState, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(state, loop)
        self._parser = state.parsers.request(state.limits.header_bytes)
        self._exchange: Http1Exchange | None = None
        self._head_framing = Framing()
        self._framing = self._head_framing  # of the current message
        self._head_begun = False  # head partially received
        self._ahead = bytearray()  # data received during a response
        self._deaf = False  # no further input is processed here
        self._upgraded = False
        self._lingering = False
        self.deadline = NEVER  # for pending input of the client

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.deadline = self.state.now + self.state.limits.header_timeout

    def receive(self, data: bytes) -> None:
        if self._deaf:
            return
        if self._exchange is None and data.find(HEAD_END) == len(data) - len(HEAD_END) and not self._head_begun:
            self._parse(data)  # fast path: exactly one head, the most common case
        else:
            self._read(data)

    def _read(self, data: bytes) -> None:
        """Pass only data of the current request to the parser, and buffer the rest."""
        at, size = 0, len(data)
        while at < size and not self._deaf:
            exchange = self._exchange
            if exchange is not None and exchange.ended:
                self._keep(data[at:])
                return
            end = self._framing.next_end(data, at)
            if end == at or (exchange is not None and self._framing.is_mostly_overhead(exchange.body_size)):
                self._refuse(400)
                return
            self._parse(data[at:end])
            at = end

    def _keep(self, data: bytes) -> None:
        self._ahead += data
        if len(self._ahead) > UNREAD:
            self.pause()

    def _parse(self, data: bytes) -> None:
        try:
            for event in self._parser.receive(data):
                if isinstance(event, bytes):
                    if self._exchange is not None:
                        self._exchange.receive(event)
                        if self._exchange.body_size > self._exchange.allowance:
                            self.pause()
                elif event is END:
                    if self._exchange is not None:
                        self.deadline = NEVER
                        self._exchange.receive_end()
                else:
                    self._head_begun = False
                    exchange = self._exchange_for(event)
                    self._exchange = exchange
                    self.deadline = NEVER
                    if event.framing is not None:
                        self._framing = event.framing
                        exchange.ended = False
                        self.deadline = self.state.now + self.state.limits.body_timeout
                    exchange.task = self.loop.create_task(exchange.run(self.state.handler))
                if self._deaf:
                    return
        except BadMessage as error:
            self._refuse(error.status)
            return
        if self._exchange is None and not self._head_begun:
            self._head_begun = True
            self.deadline = self.state.now + self.state.limits.header_timeout

    def _exchange_for(self, head: RequestHead) -> Http1Exchange:
        """Build the exchange. Raises BadMessage for an invalid target."""
        try:
            target = parse_target(head.target)
        except BadTarget as error:
            raise BadMessage(str(error)) from None
        exchange = Http1Exchange(
            self,
            keep_alive=head.keep_alive,
            version_1_0=head.version == "1.0",
            expects_continue=head.expects_continue,
        )
        exchange.request = Request(
            head.method,
            target.path,
            target.query_string,
            head.headers,
            exchange.read_body,
            self.scheme,
            head.version,
            self.client,
            self.transport,
            exchange.disconnected,
            exchange.stream_body,
        )
        return exchange

    def answered(self, exchange: Http1Exchange) -> None:
        """Continue with the next request, if the connection persists."""
        self._exchange = None
        if self._upgraded:
            self.state.forget(self)
            self.transport.close()
        if self.lost or self.transport.is_closing():
            return
        if not exchange.ended:
            self._linger()
        elif not exchange.keep_alive or self.state.draining:
            self.close()
        else:
            self.deadline = self.state.now + self.state.limits.idle_timeout
            self._framing = self._head_framing
            self._parser.next_request()
            self.read_on()
            if self._ahead:
                ahead, self._ahead = bytes(self._ahead), bytearray()
                self._read(ahead)

    def hand_over(self) -> bytes:
        """Release the transport with reading paused; return the data after the request."""
        if not self._parser.asks_upgrade():
            raise RuntimeError("the request did not ask for an upgrade")
        self._deaf = self._upgraded = True
        self.pause()
        return bytes(self._ahead) + self.take_unread()

    def _refuse(self, status: int) -> None:
        """Answer an invalid request like net/http, and close."""
        if self._exchange is not None:
            self._deaf = True
            self._exchange.leave()
            self.abort()
            return
        line = STATUS_LINES[status]
        head = line + b"content-type: text/plain; charset=utf-8\r\nconnection: close\r\n\r\n"
        self.transport.write(head + _REFUSALS.get(status, line[len(b"HTTP/1.1 ") : -2]))
        self._linger()

    def _linger(self) -> None:
        """Delay the close: closing with unread input resets the connection, and the client might miss the response."""
        self._deaf = self._lingering = True
        self.deadline = self.state.now + self.state.limits.linger
        self.read_on()

    def sweep(self, now: float) -> None:
        super().sweep(now)
        if now <= self.deadline or self.lost:
            return
        if self._exchange is None:
            self.close()
        else:
            self.abort()

    def abort(self) -> None:
        super().abort()
        if self._upgraded and self._exchange is not None:
            self._exchange.task.cancel()

    def drain(self) -> None:
        """Close after a grace period. A request within the grace period is answered with `connection: close`."""
        if self._exchange is None and not self._lingering:
            self._await_last_calls(LAST_CALLS)

    def _await_last_calls(self, waits: tuple[float, ...]) -> None:
        if waits:
            self.loop.call_later(waits[0], self._await_last_calls, waits[1:])
        elif self._exchange is None and not self._lingering:
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._exchange is not None:
            self._exchange.leave()
