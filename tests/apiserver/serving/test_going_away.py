"""A server that stops: whoever is connected loses no request, and keeps nobody waiting."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator

import h2.events
from serving_harness import (
    Http1Client,
    Http2Client,
    answering,
    client_context,
    eventually,
    secure_options,
    serving,
    transport_of,
)

from pilothouse.apiserver.http import Request, Response
from pilothouse.apiserver.http2 import frames
from pilothouse.controlplane.certificates.paths import CertificatePaths

LARGE = b"x" * (8 << 20)


async def test_a_request_that_was_on_its_way_is_answered_and_told_that_the_connection_closes(
    pki: CertificatePaths,
) -> None:
    async with serving(answering(b"late"), secure_options(pki)) as server:
        client = await Http1Client.connect(server.port, client_context(pki, alpn="http/1.1"))
        ending = asyncio.create_task(server.shutdown(10))
        await asyncio.sleep(0)
        client.ask("/")
        answer = await client.answer()
        assert (answer.body, answer.headers[b"connection"]) == (b"late", b"close")
        await ending


async def test_who_keeps_a_connection_without_saying_goodbye_is_not_waited_for(pki: CertificatePaths) -> None:
    async with serving(answering(b"hi"), secure_options(pki)) as server:
        client = await Http1Client.connect(server.port, client_context(pki, alpn="http/1.1"))
        client.ask("/")
        await client.answer()
        transport_of(client.writer).pause_reading()
        start = time.monotonic()
        await server.shutdown(10)
        assert time.monotonic() - start < 2


async def test_who_has_not_read_the_answer_is_waited_for(pki: CertificatePaths) -> None:
    async with serving(answering(LARGE), secure_options(pki)) as server:
        client = await Http1Client.connect(server.port, client_context(pki, alpn="http/1.1"))
        transport_of(client.writer).pause_reading()
        client.ask("/")
        await eventually(lambda: server.connections)
        ending = asyncio.create_task(server.shutdown(10))
        await asyncio.wait([ending], timeout=0.5)
        transport_of(client.writer).resume_reading()
        assert (await client.answer()).body == LARGE
        await ending


async def test_a_request_that_crosses_the_goaway_is_not_reset_but_named_as_not_looked_at(
    pki: CertificatePaths,
) -> None:
    async with serving(answering(b"hi"), secure_options(pki)) as server:
        client = await Http2Client.connect(server.port, client_context(pki, alpn="h2"))
        await client.get("/")
        transport_of(client.writer).pause_reading()
        ending = asyncio.create_task(server.shutdown(10))
        await asyncio.sleep(0)
        crossing = client.ask("/", "POST", body=b"x" * 1000)
        await asyncio.sleep(0)
        transport_of(client.writer).resume_reading()
        assert await client.goaway() == 0
        (goaway,) = [event for event in client.events if isinstance(event, h2.events.ConnectionTerminated)]
        assert goaway.last_stream_id is not None
        assert goaway.last_stream_id < crossing
        assert await client.reader.read() == b""
        await ending


async def test_a_stream_that_asks_for_a_new_connection_does_so_at_its_beginning(pki: CertificatePaths) -> None:
    async def body() -> AsyncIterator[bytes]:
        await asyncio.Event().wait()
        yield b""

    async def handler(request: Request) -> Response:
        return Response(200, body(), [(b"connection", b"close")])

    async with serving(handler, secure_options(pki)) as server:
        client = await Http2Client.connect(server.port, client_context(pki, alpn="h2"))
        client.ask("/")
        assert await client.goaway() == 0


async def test_who_was_not_yet_taken_in_is_answered(pki: CertificatePaths) -> None:
    """The kernel makes connections by itself: closing the listener would reset those that nobody has accepted."""
    async with serving(answering(b"welcome"), secure_options(pki)) as server:
        waiting = socket.create_connection(("127.0.0.1", server.port))  # the event loop has no turn to accept it
        ending = asyncio.create_task(server.shutdown(10))
        context = client_context(pki, alpn="http/1.1")
        client = Http1Client(*await asyncio.open_connection(sock=waiting, ssl=context, server_hostname="127.0.0.1"))
        client.ask("/")
        assert (await client.answer()).body == b"welcome"
        await ending


async def test_who_was_not_yet_taken_in_is_told_to_go_elsewhere_under_http2(pki: CertificatePaths) -> None:
    async with serving(answering(b"welcome"), secure_options(pki)) as server:
        waiting = socket.create_connection(("127.0.0.1", server.port))
        ending = asyncio.create_task(server.shutdown(10))
        context = client_context(pki, alpn="h2")
        client = Http2Client(*await asyncio.open_connection(sock=waiting, ssl=context, server_hostname="127.0.0.1"))
        client.h2.initiate_connection()
        client.flush()
        client.ask("/", "POST", body=b"x")
        assert frames.goaway(0, frames.ErrorCode.NO_ERROR) in await client.reader.read()
        await ending


async def test_a_handshake_that_never_ends_does_not_keep_the_server(pki: CertificatePaths) -> None:
    async with serving(answering(b""), secure_options(pki)) as server:
        silent = socket.create_connection(("127.0.0.1", server.port))
        start = time.monotonic()
        await server.shutdown(10)
        assert time.monotonic() - start < 5
        silent.close()
