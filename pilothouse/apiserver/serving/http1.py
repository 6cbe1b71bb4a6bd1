"""HTTP/1.1 connections: zttp reads the requests, one at a time; answers are written here.

Guarantees: a head that is too large is answered 431, a malformed one 400, and one whose body is coded in another way
than in chunks 501; no byte of a request is taken for another's, nor lost; a body is taken in no faster than its
handler reads it; when an answer comes before its request's body is complete the connection is closed, but only after
the client had a moment to read the answer.
"""

from __future__ import annotations

import asyncio
from typing import Final, cast

import zttp

from pilothouse.apiserver.http import Request
from pilothouse.apiserver.serving.http1_exchange import STATUS_LINES, UNREAD, Http1Exchange
from pilothouse.apiserver.serving.http1_framing import HEAD_END, BadHead, Framing, body_framing
from pilothouse.apiserver.serving.long_head import LongHead, parse_long_head
from pilothouse.apiserver.serving.state import LAST_CALLS, NEVER, ServingState
from pilothouse.apiserver.serving.target import BadTarget, parse_target
from pilothouse.apiserver.serving.transport import ClientConnection

_REFUSALS: Final = {501: b"Unsupported transfer encoding"}
"""net/http's words, where they are not the status line's."""


class Http1Connection(ClientConnection):
    def __init__(self, state: ServingState, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(state, loop)
        self._parser = zttp.Connection(zttp.SERVER)
        self._exchange: Http1Exchange | None = None
        self._head_framing = Framing()
        self._framing = self._head_framing  # of what is being read
        self._head = bytearray()  # what has come of a head that is not complete
        self._ahead = bytearray()  # what came while a request was being answered
        self._deaf = False  # what comes is not read any more, at least not here
        self._upgraded = False
        self._own_head = False  # the parser does not take the head: it is collected in _head
        self._long_head: LongHead | None = None  # whose short form the parser reads
        self._lingering = False
        self.deadline = NEVER  # for what is awaited from the client

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.deadline = self.state.now + self.state.limits.header_timeout

    def receive(self, data: bytes) -> None:
        if self._deaf:
            return
        if self._exchange is None and data.find(HEAD_END) == len(data) - len(HEAD_END) and not self._head:
            self._parse(data)  # a whole head and nothing else, as most requests are
        else:
            self._read(data)

    def _read(self, data: bytes) -> None:
        """Gives the parser no more than belongs to the request that is being read. The rest waits for its turn."""
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
        if self._own_head:
            self._read_own_head(data)
            return
        try:
            self._handle_events(self._parser.receive_event(data), data)
        except zttp.RemoteProtocolError as error:
            self._broken(str(error), data)

    def _broken(self, why: str, data: bytes) -> None:
        """Heads that are too long for the parser, or that it finds ambiguous, are looked at again."""
        again = "size limit" in why or "framing" in why
        if again and self._exchange is None and self._long_head is None:
            self._own_head = True
            self._read_own_head(data)
        else:
            self._refuse(431 if "size limit" in why else 400)

    def _read_own_head(self, data: bytes) -> None:
        """Collects a head that the parser has given up on, and begins again with its short form."""
        if not self._head:
            self.deadline = self.state.now + self.state.limits.header_timeout
        self._head += data
        if len(self._head) > self.state.limits.header_bytes + len(HEAD_END):
            self._refuse(431)
        elif self._head.endswith(HEAD_END):
            self._begin_again(bytes(self._head))

    def _begin_again(self, head: bytes) -> None:
        try:
            self._long_head = parse_long_head(head)
        except BadHead as error:
            self._refuse(error.status)
            return
        self._own_head = False
        self._head.clear()
        self._parser = zttp.Connection(zttp.SERVER)
        self._parse(self._long_head.short)

    def _handle_events(self, event: zttp.Event, data: bytes) -> None:
        while event is not zttp.NEED_DATA:
            if isinstance(event, zttp.Request):
                self._begin(event)
            elif isinstance(event, zttp.Data):
                self._receive(event.data)
            elif isinstance(event, zttp.EndOfMessage):
                self._receive_end()
            if self._deaf:
                return
            event = self._parser.next_event()
        if self._exchange is None:
            self._await_head(data)

    def _await_head(self, data: bytes) -> None:
        if not self._head:
            self.deadline = self.state.now + self.state.limits.header_timeout
        self._head += data

    def _begin(self, event: zttp.Request) -> None:
        self._head.clear()
        try:
            exchange = self._exchange_for(event)
            if not event.end_stream:
                self._framing = body_framing(event)
        except BadHead as error:
            self._refuse(error.status)
            return
        self._exchange = exchange
        self.deadline = NEVER
        if not event.end_stream:
            exchange.ended = False
            self.deadline = self.state.now + self.state.limits.body_timeout
        exchange.task = self.loop.create_task(exchange.run(self.state.handler))

    def _exchange_for(self, event: zttp.Request) -> Http1Exchange:
        """Raises BadHead where the target is none."""
        long_head, self._long_head = self._long_head, None
        try:
            target = parse_target(long_head.target if long_head else event.target)
        except BadTarget as error:
            raise BadHead(str(error)) from None
        version_1_0 = event.http_version == b"1.0"
        exchange = Http1Exchange(
            self,
            keep_alive=not self._parser.should_close() and not (long_head and long_head.ambiguous),
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
                self.pause()

    def _receive_end(self) -> None:
        if self._exchange is not None:
            self.deadline = NEVER
            self._exchange.receive_end()

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
        self._framing = self._head_framing
        self._parser.start_next_cycle()
        self.read_on()
        if self._ahead:
            ahead, self._ahead = bytes(self._ahead), bytearray()
            self._read(ahead)

    def hand_over(self) -> bytes:
        """Gives the transport away, reading paused; returns what came after the request."""
        if self._parser.upgrade() is None:
            raise RuntimeError("the request did not ask for an upgrade")
        self._deaf = self._upgraded = True
        self.pause()
        return bytes(self._ahead) + self.take_unread()

    def _refuse(self, status: int) -> None:
        """Answers what is no request, as net/http does, and closes."""
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
        """A close with unread input resets the connection, and the client might not see the answer."""
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
        """A request that comes within the last call is answered, and the answer says that the connection closes."""
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
