"""HTTP/1.1 connections: zttp reads the requests, one at a time; answers are written here.

Guarantees: a head that is too large is answered 431 and a malformed one 400; a body is taken in no faster than
its handler reads it; when an answer comes before its request's body is complete the connection is closed, but only
after the client had a moment to read the answer.
"""

from __future__ import annotations

import asyncio
from typing import cast

import zttp

from pilothouse.apiserver.http import Request
from pilothouse.apiserver.serving.http1_exchange import STATUS_LINES, UNREAD, Http1Exchange
from pilothouse.apiserver.serving.long_head import BadHead, LongHead, parse_long_head
from pilothouse.apiserver.serving.state import NEVER, ServingState
from pilothouse.apiserver.serving.target import BadTarget, parse_target
from pilothouse.apiserver.serving.transport import ClientConnection


class Http1Connection(ClientConnection):
    def __init__(self, state: ServingState, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(state, loop)
        self._parser = zttp.Connection(zttp.SERVER)
        self._exchange: Http1Exchange | None = None
        self._head = bytearray()  # what has come of a head that is not complete
        self._ahead = 0  # how much came while a request was being answered
        self._early: bytes | None = None  # what came after an upgrade request; None for other requests
        self._upgraded = False
        self._too_long = False  # the head is too long for the parser, and collected in _head
        self._long_head: LongHead | None = None  # whose short form the parser reads
        self._reading = True
        self._lingering = False
        self.deadline = NEVER  # for what is awaited from the client

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.deadline = self.state.now + self.state.limits.header_timeout

    def data_received(self, data: bytes) -> None:
        if self._lingering or self._upgraded:
            return
        if self._too_long:
            self._read_long_head(data)
            return
        if self._exchange is not None and self._exchange.ended:
            self._receive_ahead(data)
        self._parse(data)

    def _parse(self, data: bytes) -> None:
        try:
            self._handle_events(self._parser.receive_event(data), data)
        except zttp.RemoteProtocolError as error:
            if "size limit" not in str(error):
                self._refuse(400)
            elif self._exchange is None and self._long_head is None:
                self._too_long = True
                self._read_long_head(data)
            else:
                self._refuse(431)

    def _read_long_head(self, data: bytes) -> None:
        """Collects a head that the parser has given up on, and begins again with its short form."""
        searched = max(0, len(self._head) - 3)
        if not self._head:
            self.deadline = self.state.now + self.state.limits.header_timeout
        self._head += data
        end = self._head.find(b"\r\n\r\n", searched)
        if max(end, len(self._head) if end < 0 else 0) > self.state.limits.header_bytes:
            self._refuse(431)
        elif end >= 0:
            self._begin_again(bytes(self._head[: end + 4]), bytes(self._head[end + 4 :]))

    def _begin_again(self, head: bytes, rest: bytes) -> None:
        try:
            self._long_head = parse_long_head(head)
        except BadHead:
            self._refuse(400)
            return
        self._too_long = False
        self._head.clear()
        self._parser = zttp.Connection(zttp.SERVER)
        self._parse(self._long_head.short + rest)

    def _receive_ahead(self, data: bytes) -> None:
        """The parser holds what comes before its turn; after an upgrade it belongs to the new protocol."""
        if self._early is not None:
            self._early += data
        self._ahead += len(data)
        if self._ahead > UNREAD:
            self._pause()

    def _handle_events(self, event: zttp.Event, data: bytes) -> None:
        while event is not zttp.NEED_DATA:
            if isinstance(event, zttp.Request):
                self._begin(event, data)
            elif isinstance(event, zttp.Data):
                self._receive(event.data)
            elif isinstance(event, zttp.EndOfMessage):
                self._receive_end()
            if self._lingering:
                return
            event = self._parser.next_event()
        if self._exchange is None and data:
            self._await_head(data)

    def _await_head(self, data: bytes) -> None:
        if not self._head:
            self.deadline = self.state.now + self.state.limits.header_timeout
        self._head += data

    def _begin(self, event: zttp.Request, data: bytes) -> None:
        exchange = self._exchange_for(event)
        if exchange is None:
            self._refuse(400)
            return
        self._exchange = exchange
        if not event.end_stream:
            exchange.ended = False
            self.deadline = self.state.now + self.state.limits.body_timeout
        else:
            self.deadline = NEVER
            if data and self._parser.upgrade() is not None:
                self._early = bytes(self._head + data).partition(b"\r\n\r\n")[2]
        self._head.clear()
        exchange.task = self.loop.create_task(exchange.run(self.state.handler))

    def _exchange_for(self, event: zttp.Request) -> Http1Exchange | None:
        """None where the target is none."""
        long_head, self._long_head = self._long_head, None
        try:
            target = parse_target(long_head.target if long_head else event.target)
        except BadTarget:
            return None
        version_1_0 = event.http_version == b"1.0"
        exchange = Http1Exchange(
            self,
            keep_alive=not self._parser.should_close(),
            version_1_0=version_1_0,
            expects_continue=event.expect_continue,
        )
        exchange.request = Request(
            event.method.decode(),
            target.path,
            target.query_string,
            long_head.headers if long_head else cast("zttp.HeaderBlock", event.headers).to_list(lowercase_names=True),
            exchange.read_body,
            self.scheme,
            "1.0" if version_1_0 else "1.1",
            self.client,
            self.transport,
            exchange.disconnected,
            exchange.stream_body,
        )
        return exchange

    def _receive(self, data: bytes) -> None:
        if self._exchange is not None:
            self._exchange.receive(data)
            if self._exchange.body_size > self._exchange.allowance:
                self._pause()

    def _receive_end(self) -> None:
        if self._exchange is not None:
            self.deadline = NEVER
            self._exchange.receive_end()

    def _pause(self) -> None:
        if self._reading and not self.transport.is_closing():
            self._reading = False
            self.transport.pause_reading()

    def read_on(self) -> None:
        if not self._reading and not self.transport.is_closing():
            self._reading = True
            self.transport.resume_reading()

    def answered(self, exchange: Http1Exchange) -> None:
        """The next request's turn, if there may be one."""
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
            self._next_request()

    def _next_request(self) -> None:
        self.deadline = self.state.now + self.state.limits.idle_timeout
        self._early, self._ahead = None, 0
        self.read_on()
        self._parser.start_next_cycle()
        try:
            self._handle_events(self._parser.next_event(), b"")
        except zttp.RemoteProtocolError as error:
            self._refuse(431 if "size limit" in str(error) else 400)

    def hand_over(self) -> bytes:
        """Gives the transport away, reading paused; returns what came after the request."""
        if self._early is None:
            raise RuntimeError("the request did not ask for an upgrade")
        self._upgraded = True
        self._pause()
        return self._early

    def _refuse(self, status: int) -> None:
        """Answers what is no request, as net/http does, and closes."""
        if self._exchange is not None:
            self._exchange.leave()
            self.abort()
            return
        line = STATUS_LINES[status]
        head = line + b"content-type: text/plain; charset=utf-8\r\nconnection: close\r\n\r\n"
        self.transport.write(head + line[len(b"HTTP/1.1 ") : -2])
        self._linger()

    def _linger(self) -> None:
        """A close with unread input resets the connection, and the client might not see the answer."""
        self._lingering = True
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
        if self._exchange is None and not self._lingering:
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._exchange is not None:
            self._exchange.leave()
