from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from patience import PATIENCE
from serving_harness import answering, eventually

from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.apiserver.serving.asgi import AsgiApp
from pilothouse.machinery.errors import RequestEntityTooLarge


class Call:
    """An ASGI server's side of one request."""

    def __init__(self, handler: Handler, *, body: tuple[bytes, ...] = (b"",), **scope: Any) -> None:
        self.incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        for number, part in enumerate(body, 1):
            self.incoming.put_nowait({"type": "http.request", "body": part, "more_body": number < len(body)})
        self.sent: list[Any] = []
        whole = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": [], **scope}
        self.task = asyncio.ensure_future(AsgiApp(handler)(whole, self.incoming.get, self._send))

    async def _send(self, message: Any) -> None:
        self.sent.append(message)

    async def done(self) -> Call:
        await asyncio.wait_for(self.task, PATIENCE)
        return self

    @property
    def body(self) -> bytes:
        return b"".join(message["body"] for message in self.sent[1:])


async def test_a_whole_body_is_one_start_and_one_body_message() -> None:
    call = await Call(answering(b"hello")).done()
    headers = [(b"content-type", b"text/plain"), (b"content-length", b"5")]
    assert call.sent == [
        {"type": "http.response.start", "status": 200, "headers": headers},
        {"type": "http.response.body", "body": b"hello", "more_body": False},
    ]


async def test_the_request_is_what_the_scope_says() -> None:
    async def handler(request: Request) -> Response:
        parts = (request.method, request.path, request.param("x"), request.header(b"accept"), request.client)
        return Response(200, repr(parts).encode())

    call = Call(
        handler,
        method="PUT",
        path="/a b",
        raw_path=b"/a%20b",
        query_string=b"x=1+2",
        headers=[[b"accept", b"text/plain"]],
        client=["192.0.2.1", 5],
    )
    assert (await call.done()).body == b"('PUT', '/a b', '1 2', 'text/plain', ('192.0.2.1', 5))"


async def test_bodies_come_in_parts_and_have_a_limit() -> None:
    async def handler(request: Request) -> Response:
        try:
            return Response(200, await request.read_body(5))
        except RequestEntityTooLarge:
            return Response(413)

    assert (await Call(handler, body=(b"ab", b"cd", b"e")).done()).body == b"abcde"
    assert (await Call(handler, body=(b"ab", b"cd", b"ef", b"gh")).done()).sent[0]["status"] == 413


async def test_answers_to_head_have_no_body() -> None:
    call = await Call(answering(b"hello"), method="HEAD").done()
    assert (b"content-length", b"5") in call.sent[0]["headers"]
    assert call.body == b""


async def test_a_stream_s_head_is_sent_before_its_first_chunk_and_idle_streams_end_with_their_client() -> None:
    ends: list[str] = []

    async def body() -> AsyncIterator[bytes]:
        try:
            await asyncio.Event().wait()
            yield b"never"
        finally:
            ends.append("closed")

    call = Call(answering(body))
    await eventually(lambda: len(call.sent) == 2)
    assert call.sent[1] == {"type": "http.response.body", "body": b"", "more_body": True}
    call.incoming.put_nowait({"type": "http.disconnect"})
    await call.done()
    assert ends == ["closed"]


async def test_a_stream_that_is_cancelled_is_closed() -> None:
    ends: list[str] = []

    async def body() -> AsyncIterator[bytes]:
        try:
            yield b"one"
            await asyncio.Event().wait()
        finally:
            ends.append("closed")

    call = Call(answering(body))
    await eventually(lambda: len(call.sent) == 3)
    call.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call.task
    assert ends == ["closed"]


async def test_a_handler_learns_that_its_client_has_gone() -> None:
    async def handler(request: Request) -> Response:
        assert request.disconnected is not None
        await request.disconnected()
        return Response(200, b"")

    call = Call(handler)
    call.incoming.put_nowait({"type": "http.disconnect"})
    await call.done()


async def test_a_client_that_cannot_be_sent_to_ends_the_stream_quietly(caplog: pytest.LogCaptureFixture) -> None:
    async def body() -> AsyncIterator[bytes]:
        while True:
            yield b"x"

    async def send(message: Any) -> None:
        raise OSError("gone")

    scope = {"type": "http", "method": "GET", "path": "/", "headers": []}
    await AsgiApp(answering(body))(scope, asyncio.Queue().get, send)
    assert not caplog.records


async def test_only_http_is_served() -> None:
    with pytest.raises(ValueError, match="websocket"):
        await AsgiApp(answering(b""))({"type": "websocket"}, asyncio.Queue().get, lambda _: asyncio.sleep(0))
