"""The server's own calls: the handler is called in the caller's task, and its answer read as it is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.errors import ConnectionFailed, RequestTimedOut
from pilothouse.client.rest.options import ListOptions
from pilothouse.client.rest.transport import HttpRequest
from pilothouse.controlplane.loopback import HandlerTransport
from pilothouse.machinery.errors import NotFound, RequestEntityTooLarge


def client_of(handler: Handler) -> Client:
    return Client(HandlerTransport(handler))


async def test_a_request_arrives_as_it_would_over_http() -> None:
    seen: list[Request] = []

    async def handler(request: Request) -> Response:
        seen.append(request)
        return Response(201, b'{"body":%s}' % (await request.read_body(100) or b"null"))

    maps = client_of(handler).resource("v1", "configmaps", namespace="a b")
    assert await maps.create({"x": 1}) == {"body": {"x": 1}}
    assert (seen[0].method, seen[0].path) == ("POST", "/api/v1/namespaces/a b/configmaps")
    assert seen[0].header(b"content-type") == "application/json"
    assert seen[0].header(b"content-length") == "7"
    await maps.list(ListOptions(limit=5))
    assert seen[1].query_string == "limit=5"
    with pytest.raises(RequestEntityTooLarge):
        await seen[0].read_body(3)


async def test_errors_and_repeated_headers_are_read_as_over_http() -> None:
    async def handler(request: Request) -> Response:
        body = b'{"kind":"Status","reason":"NotFound","message":"gone","code":404}'
        return Response(404, body, [(b"warning", b'299 - "a"'), (b"warning", b'299 - "b"')])

    warnings: list[str] = []
    client = Client(HandlerTransport(handler), on_warning=warnings.append)
    with pytest.raises(NotFound, match="gone"):
        await client.get_json("/x")
    assert warnings == ["a", "b"]


async def test_a_watch_goes_on_when_it_is_read_and_ends_when_it_is_closed() -> None:
    made, closed = 0, asyncio.Event()

    async def events() -> AsyncIterator[bytes]:
        nonlocal made
        try:
            while True:
                made += 1
                yield b'{"type":"ADDED","object":{"n":%d}}\n' % made
        finally:
            closed.set()

    async def handler(request: Request) -> Response:
        return Response(200, events())

    async with await client_of(handler).resource("v1", "pods").watch() as watch:
        assert [(await anext(watch)).object["n"] for _ in range(3)] == [1, 2, 3]
        assert made == 3
    assert closed.is_set()


async def test_a_handler_or_a_stream_that_breaks_is_a_broken_connection() -> None:
    async def broken(request: Request) -> Response:
        raise RuntimeError("early")

    async def events() -> AsyncIterator[bytes]:
        yield b'{"type":'
        raise RuntimeError("late")

    async def breaking(request: Request) -> Response:
        return Response(200, events())

    with pytest.raises(ConnectionFailed) as early:
        await client_of(broken).request("POST", "/x", body={})
    assert "early" in str(early.value.__cause__)
    watch = await client_of(breaking).resource("v1", "pods").watch()
    with pytest.raises(ConnectionFailed) as late:
        await anext(watch)
    assert "late" in str(late.value.__cause__)


async def test_a_handler_that_does_not_answer_in_time_is_cancelled() -> None:
    ended = asyncio.Event()

    async def handler(request: Request) -> Response:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    with pytest.raises(RequestTimedOut):
        await HandlerTransport(handler).send(HttpRequest("GET", "/x", timeout=0.001))
    assert ended.is_set()


async def test_whoever_asks_without_end_leaves_turns_to_others() -> None:
    async def handler(request: Request) -> Response:
        return Response(200, b"{}")

    async def ask_without_end() -> None:
        while True:
            await client_of(handler).get_json("/x")

    asking = asyncio.ensure_future(ask_without_end())
    for _ in range(10):
        await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
