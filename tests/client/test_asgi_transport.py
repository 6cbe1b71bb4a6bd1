"""The loopback: a client that calls an app in the same process."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from patience import PATIENCE

from pilothouse.client.rest.connect import loopback
from pilothouse.client.rest.errors import ConnectionFailed, RequestTimedOut
from pilothouse.client.rest.options import ListOptions
from pilothouse.client.rest.transport import HttpRequest
from pilothouse.machinery.errors import NotFound


class Answering:
    """An app that answers the same to everyone and writes down what it was asked."""

    scope: Any
    body: bytes

    def __init__(
        self, status: int, *chunks: bytes, headers: dict[bytes, bytes] | None = None, finish: bool = True
    ) -> None:
        self._head = {"type": "http.response.start", "status": status, "headers": [*(headers or {}).items()]}
        self._chunks = chunks
        self._finish = finish

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.scope = scope
        self.body = (await receive())["body"]
        await send(self._head)
        for chunk in self._chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        if self._finish:
            await send({"type": "http.response.body", "body": b"", "more_body": False})


async def test_a_request_arrives_as_asgi_says() -> None:
    app = Answering(201, b'{"kind":', b'"ConfigMap"}')
    client = loopback(app, headers={"Authorization": "Bearer loop"}, state={"user": "system:apiserver"})
    maps = client.resource("v1", "configmaps", namespace="a b")
    assert await maps.create({"x": 1}) == {"kind": "ConfigMap"}
    scope = app.scope
    assert (scope["type"], scope["method"], scope["path"]) == ("http", "POST", "/api/v1/namespaces/a b/configmaps")
    assert scope["raw_path"] == b"/api/v1/namespaces/a%20b/configmaps"
    headers = dict(scope["headers"])
    assert headers[b"authorization"] == b"Bearer loop"
    assert headers[b"content-type"] == b"application/json"
    assert scope["state"] == {"user": "system:apiserver"}
    assert app.body == b'{"x":1}'
    await maps.list(ListOptions(limit=5))
    assert scope is not app.scope
    assert app.scope["query_string"] == b"limit=5"


async def test_errors_are_typed_as_over_http() -> None:
    body = b'{"kind":"Status","reason":"NotFound","message":"gone","code":404}'
    with pytest.raises(NotFound, match="gone"):
        await loopback(Answering(404, body)).get_json("/x")


async def test_a_watch_streams_and_closing_it_tells_the_app() -> None:
    told = asyncio.Event()
    steps: asyncio.Queue[bytes] = asyncio.Queue()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        gone = asyncio.ensure_future(receive())
        try:
            while not gone.done():
                line = await steps.get()
                await send({"type": "http.response.body", "body": line, "more_body": True})
        finally:
            told.set()
            gone.cancel()

    client = loopback(app)
    async with await client.resource("v1", "pods").watch() as events:
        for number in range(3):
            await steps.put(b'{"type":"ADDED","object":{"n":%d}}\n' % number)
            assert (await anext(events)).object == {"n": number}
    assert told.is_set()


async def test_an_app_is_held_back_when_nobody_reads() -> None:
    sent = 0

    async def app(scope: Any, receive: Any, send: Any) -> None:
        nonlocal sent
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while True:
            await send({"type": "http.response.body", "body": b"x" * 10, "more_body": True})
            sent += 1

    events = await loopback(app).resource("v1", "pods").watch()
    for _ in range(100):
        await asyncio.sleep(0)
    assert sent <= 16
    await events.aclose()


async def test_a_watch_that_nobody_reads_can_be_closed_though_the_app_takes_the_cancellation_for_its_end() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        with suppress(asyncio.CancelledError):
            while True:
                await send({"type": "http.response.body", "body": b"x" * 10, "more_body": True})

    events = await loopback(app).resource("v1", "pods").watch()
    for _ in range(100):
        await asyncio.sleep(0)
    await asyncio.wait_for(events.aclose(), PATIENCE)


async def test_an_app_that_breaks_is_a_broken_connection() -> None:
    async def before(scope: Any, receive: Any, send: Any) -> None:
        raise RuntimeError("early")

    async def after(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b'{"type":', "more_body": True})
        raise RuntimeError("late")

    with pytest.raises(ConnectionFailed) as early:
        await loopback(before).request("POST", "/x", body={})
    assert isinstance(early.value.__cause__, RuntimeError)
    events = await loopback(after).resource("v1", "pods").watch()
    with pytest.raises(ConnectionFailed) as late:
        await anext(events)
    assert "late" in str(late.value.__cause__)
    await events.aclose()


async def test_an_app_that_does_not_answer_in_time_is_cancelled() -> None:
    ended = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    transport = loopback(app).transport
    with pytest.raises(RequestTimedOut):
        await transport.send(HttpRequest("GET", "/x", timeout=0.001))
    assert ended.is_set()


async def test_cancelling_a_request_cancels_the_app() -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        try:
            started.set()
            await asyncio.Event().wait()
        finally:
            ended.set()

    request = asyncio.ensure_future(loopback(app).get_json("/x"))
    await started.wait()
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    assert ended.is_set()
