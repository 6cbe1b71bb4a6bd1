"""Answers of pods on their way to the client: the connection to the pod ends with them, however they end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from patience import PATIENCE

from pilothouse.apiserver.http import Request, StreamBroken
from pilothouse.apiserver.outbound.targets import Target
from pilothouse.apiserver.streams import close_stream
from pilothouse.kube.core.pods.connect.forwarding import download, forward
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.server_errors import InternalError, ServiceUnavailable

LOG = GroupResource("", "pods/log")


@asynccontextmanager
async def answering(answer: bytes, *, hang_up: bool = False) -> AsyncIterator[Target]:
    """A server that says this and, unless it hangs up itself, waits for the end: which must come."""
    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        if not hang_up:
            await reader.read()
        writer.close()
        ended.set()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield Target("127.0.0.1", server.sockets[0].getsockname()[1], "/")
        async with asyncio.timeout(PATIENCE):
            await ended.wait()


def get() -> Request:
    async def no_body(limit: int) -> bytes:
        return b""

    return Request("GET", "/p/", "", [], no_body)


async def test_unread_response_closes_the_connection() -> None:
    async with answering(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n") as target:
        response = await forward(get(), target, prefix="/p")
        assert not isinstance(response.body, bytes)
        await close_stream(response.body)


async def test_truncated_response_is_an_error() -> None:
    async with answering(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", hang_up=True) as target:
        response = await forward(get(), target, prefix="/p")
        assert not isinstance(response.body, bytes)
        with pytest.raises(StreamBroken):
            _ = [chunk async for chunk in response.body]


async def test_connection_closed_without_response_is_unreachable() -> None:
    async with answering(b"", hang_up=True) as target:
        with pytest.raises(ServiceUnavailable, match=r"^error trying to reach service: EOF$"):
            await forward(get(), target, prefix="/p")


async def test_endless_error_response_is_truncated() -> None:
    refusal = b"HTTP/1.1 500 Oh\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 60_000
    async with answering(refusal) as target:
        with pytest.raises(InternalError) as failed:
            await download(target, LOG, "p")
    assert failed.value.message.count("x") == 50_000
