"""The handler chain as an ASGI 3 app, for in-process calls and third-party servers.

The built-in server bypasses ASGI: its protocols build the Request and write the Response directly.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

from pilothouse.apiserver.http import Handler, Headers, Request, Response
from pilothouse.apiserver.serving.exchange import NO_BODY_STATUS, ClientGone, Exchange, parse_target

Message: TypeAlias = MutableMapping[str, Any]
Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]


class AsgiApp:
    def __init__(self, handler: Handler) -> None:
        self._handler = handler

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise ValueError(f"the ASGI scope {scope['type']} is not served")
        exchange = AsgiExchange(receive, send)
        exchange.request = _request(scope, exchange)
        task = asyncio.current_task()
        assert task is not None
        exchange.task = task
        await exchange.run(self._handler)


def _request(scope: Scope, exchange: AsgiExchange) -> Request:
    query: bytes = scope.get("query_string", b"")
    raw_path: bytes | None = scope.get("raw_path")
    return Request(
        scope["method"],
        parse_target(raw_path).path if raw_path else scope["path"],
        query.decode("latin-1"),
        [(bytes(name), bytes(value)) for name, value in scope["headers"]],
        exchange.read_body,
        scope.get("scheme", "http"),
        scope.get("http_version", "1.1"),
        tuple(scope["client"]) if scope.get("client") else None,
        None,
        exchange.disconnected,
    )


class AsgiExchange(Exchange):
    __slots__ = ("_head", "_receive", "_send", "_watcher")

    def __init__(self, receive: Receive, send: Send) -> None:
        super().__init__()
        self.ended = False
        self._receive = receive
        self._send = send
        self._head: Message = {}
        self._watcher: asyncio.Task[None] | None = None  # detects a disconnect after the body is read

    def send_whole(self, response: Response, body: bytes) -> memoryview | None:
        headers = response.headers
        if response.status not in NO_BODY_STATUS and not any(name == b"content-length" for name, _ in headers):
            headers = [*headers, (b"content-length", b"%d" % len(body))]
        self._head = _start(response.status, headers)
        return memoryview(b"" if self.request.method == "HEAD" or response.status in NO_BODY_STATUS else body)

    async def send_rest(self, rest: memoryview) -> None:
        await self._send_message(self._head)
        await self._send_message({"type": "http.response.body", "body": bytes(rest), "more_body": False})

    async def start(self, status: int, headers: Headers) -> None:
        self._watch()
        await self._send_message(_start(status, headers))
        await self.write(b"")

    async def write(self, chunk: bytes) -> None:
        await self._send_message({"type": "http.response.body", "body": chunk, "more_body": True})

    async def finish(self) -> None:
        await self._send_message({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send_message(self, message: Message) -> None:
        self.started = True
        try:
            await self._send(message)
        except OSError as error:
            raise ClientGone(str(error)) from None

    def abort(self) -> None:
        """Do nothing: the ASGI server detects the incomplete response."""

    def want_body(self, limit: int) -> None:
        """Do nothing: the ASGI server applies back-pressure."""

    def want_more(self, size: int) -> None:
        """Do nothing: the ASGI server applies back-pressure."""

    def done(self) -> None:
        if self._watcher is not None:
            self._watcher.cancel()

    async def disconnected(self) -> None:
        self._watch()
        await super().disconnected()

    def _watch(self) -> None:
        if self._watcher is None:
            self._watcher = asyncio.create_task(self._receive_all())

    async def _receive_all(self) -> None:
        while not self.gone:
            await self._receive_message()

    async def _receive_message(self) -> None:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self.leave()
            return
        if body := message.get("body"):
            self.receive(body)
        if not message.get("more_body"):
            self.receive_end()

    async def _more_body(self, above: int = 0) -> None:
        """Receive directly, unless the watcher already receives: concurrent receivers are not allowed."""
        if self._watcher is None:
            await self._receive_message()
        else:
            await super()._more_body(above)


def _start(status: int, headers: Headers) -> Message:
    return {"type": "http.response.start", "status": status, "headers": headers}
