"""Clients that are slow, stuck or half there: none of them may hold on to the server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial

from patience import PATIENCE
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
from pilothouse.apiserver.serving.limits import Limits
from pilothouse.apiserver.serving.listener import TLS_HANDSHAKE_ERRORS
from pilothouse.apiserver.serving.server import Server
from pilothouse.apiserver.serving.transport import ClientConnection
from pilothouse.controlplane.certificates.paths import CertificatePaths


def handshake_errors() -> float:
    errors: float = TLS_HANDSHAKE_ERRORS._value.get()
    return errors


async def read_body(request: Request) -> Response:
    return Response(200, await request.read_body(1000))


async def test_a_head_that_does_not_end_is_given_up(pki: CertificatePaths) -> None:
    async with serving(answering(b""), secure_options(pki), limits=Limits(header_timeout=0.05)) as server:
        client = await Http1Client.connect(server.port, client_context(pki, alpn="http/1.1"))
        client.send(b"GET / HTTP/1.1\r\nHost: a\r\n")
        assert await client.end() == b""
        await eventually(lambda: server.connections == 0)


async def test_a_head_that_trickles_in_is_given_up_all_the_same(pki: CertificatePaths) -> None:
    async with serving(answering(b""), secure_options(pki), limits=Limits(header_timeout=0.1)) as server:
        client = await Http1Client.connect(server.port, client_context(pki, alpn="http/1.1"))

        async def trickle() -> None:
            client.send(b"GET / HTTP/1.1\r\n")
            while True:
                client.send(b"X: y\r\n")
                await asyncio.sleep(0.01)

        trickling = asyncio.create_task(trickle())
        assert await client.end() == b""
        trickling.cancel()


async def test_a_client_that_says_nothing_is_given_up(pki: CertificatePaths) -> None:
    async with serving(answering(b""), secure_options(pki), limits=Limits(header_timeout=0.05)) as server:
        for alpn in ("http/1.1", "h2"):
            client = await Http1Client.connect(server.port, client_context(pki, alpn=alpn))
            await client.end()
        await eventually(lambda: server.connections == 0)


async def test_a_body_that_does_not_come_is_given_up(pki: CertificatePaths) -> None:
    async with serving(read_body, secure_options(pki), limits=Limits(body_timeout=0.05)) as server:
        client = await Http1Client.connect(server.port, client_context(pki, alpn="http/1.1"))
        client.ask("/", "POST", "Content-Length: 10\r\n")
        assert await client.end() == b""
        await eventually(lambda: server.connections == 0)


async def test_a_body_that_does_not_come_costs_an_http_2_client_its_stream_only(pki: CertificatePaths) -> None:
    async with serving(read_body, secure_options(pki), limits=Limits(body_timeout=0.05)) as server:
        client = await Http2Client.connect(server.port, client_context(pki, alpn="h2"))
        assert (await client.answer(client.open("/", "POST"))).reset == 8
        assert (await client.get("/")).status == 200


async def test_a_field_block_that_does_not_end_is_given_up(pki: CertificatePaths) -> None:
    async with serving(answering(b""), secure_options(pki), limits=Limits(header_timeout=0.05)) as server:
        client = await Http1Client.connect(server.port, client_context(pki, alpn="h2"))
        block = frames.frame_header(frames.HEADERS, 0, 1, 1) + b"\x82"
        client.send(frames.PREFACE + frames.settings({}) + block)
        await client.end()
        await eventually(lambda: server.connections == 0)


async def test_idle_connections_are_closed(pki: CertificatePaths) -> None:
    async with serving(answering(b"hi"), secure_options(pki), limits=Limits(idle_timeout=0.05)) as server:
        first = await Http1Client.connect(server.port, client_context(pki, alpn="http/1.1"))
        first.ask("/")
        assert (await first.answer()).body == b"hi"
        assert await first.end() == b""
        second = await Http2Client.connect(server.port, client_context(pki, alpn="h2"))
        assert (await second.get("/")).body == b"hi"
        assert await second.goaway() == 0
        await second.until(lambda: second.closed)


async def test_a_connection_with_a_stream_is_not_idle(pki: CertificatePaths) -> None:
    release = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        await release.wait()
        yield b"late"

    async with serving(answering(body), secure_options(pki), limits=Limits(idle_timeout=0.1)) as server:
        first = await Http1Client.connect(server.port, client_context(pki, alpn="http/1.1"))
        first.ask("/")
        second = await Http2Client.connect(server.port, client_context(pki, alpn="h2"))
        stream = second.ask("/")
        await asyncio.sleep(0.3)
        release.set()
        assert (await first.answer()).body == b"late"
        assert (await second.answer(stream)).body == b"late"


async def test_a_client_that_does_not_read_is_cut_off_and_little_is_queued_for_it(pki: CertificatePaths) -> None:
    taken, ends = [0], []

    async def body() -> AsyncIterator[bytes]:
        try:
            while True:
                taken[0] += 50_000
                yield b"x" * 50_000
        finally:
            ends.append("closed")

    async with serving(answering(body), secure_options(pki), limits=Limits(write_timeout=0.2)) as server:
        client = await Http1Client.connect(server.port, client_context(pki, alpn="http/1.1"))
        transport_of(client.writer).pause_reading()
        client.ask("/")
        await eventually(lambda: ends)
        await eventually(lambda: server.connections == 0)
        assert taken[0] < 32 << 20


async def test_a_whole_body_that_is_not_read_is_given_up(pki: CertificatePaths) -> None:
    body = bytes(64 << 20)
    async with serving(answering(body), secure_options(pki), limits=Limits(write_timeout=0.2)) as server:
        client = await Http1Client.connect(server.port, client_context(pki, alpn="http/1.1"))
        transport_of(client.writer).pause_reading()
        client.ask("/")
        await eventually(lambda: server.connections == 1)
        await eventually(lambda: server.connections == 0)


async def test_a_client_that_never_ends_its_handshake_is_given_up_and_counted(pki: CertificatePaths) -> None:
    before = handshake_errors()
    async with serving(answering(b""), secure_options(pki), limits=Limits(handshake_timeout=0.05)) as server:
        client = await Http1Client.connect(server.port, None)
        client.send(b"\x16\x03\x01")
        assert await client.end() == b""
    assert handshake_errors() == before + 1


async def test_half_open_clients_do_not_keep_others_out(pki: CertificatePaths) -> None:
    async with serving(answering(b"hi"), secure_options(pki)) as server:
        silent = [await Http1Client.connect(server.port, None) for _ in range(50)]
        client = await Http1Client.connect(server.port, client_context(pki, alpn="http/1.1"))
        client.ask("/")
        assert (await client.answer()).body == b"hi"
        for other in silent:
            other.close()


async def test_connections_over_the_limit_are_closed_before_their_handshake(pki: CertificatePaths) -> None:
    async with serving(answering(b"hi"), secure_options(pki), limits=Limits(connections=2)) as server:
        context = client_context(pki, alpn="http/1.1")
        first = await Http1Client.connect(server.port, context)
        silent = await Http1Client.connect(server.port, None)
        third = await Http1Client.connect(server.port, None)
        assert await third.end() == b""
        silent.close()
        first.ask("/")
        assert (await first.answer()).body == b"hi"
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    again = await Http1Client.connect(server.port, context)
                    break
                except OSError:
                    await asyncio.sleep(0)
        again.ask("/")
        assert (await again.answer()).body == b"hi"


def clients_of(server: Server) -> list[ClientConnection]:
    return [each for each in server._state.connections if isinstance(each, ClientConnection)]


def unread_bytes(server: Server) -> int:
    return sum(connection.transport.get_write_buffer_size() for connection in clients_of(server))


async def test_pipelined_requests_wait_while_their_answers_are_not_read(pki: CertificatePaths) -> None:
    async with serving(answering(bytes(60_000)), secure_options(pki)) as server:
        client = await Http1Client.connect(server.port, client_context(pki, alpn="http/1.1"))
        transport_of(client.writer).pause_reading()
        client.send(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n" * 2000)
        await eventually(lambda: any(each.write_paused for each in clients_of(server)))
        for _ in range(2000):
            await asyncio.sleep(0)
        assert unread_bytes(server) < 1 << 20
        transport_of(client.writer).resume_reading()
        for _ in range(2000):
            assert len((await client.answer()).body) == 60_000
        client.close()


async def test_streams_wait_while_the_answers_of_others_are_not_read(pki: CertificatePaths) -> None:
    answered = [0]

    async def handler(request: Request) -> Response:
        answered[0] += 1
        return Response(200, bytes(16_000))

    def has_answered(count: int) -> bool:
        return answered[0] == count

    async with serving(handler, secure_options(pki)) as server:
        client = await Http2Client.connect(server.port, client_context(pki, alpn="h2"))
        transport_of(client.writer).pause_reading()
        client.h2.increment_flow_control_window(1 << 30)
        asked = 0
        while not any(each.write_paused for each in clients_of(server)):
            client.ask("/")
            asked += 1
            await eventually(partial(has_answered, asked))
        for _ in range(90):
            client.ask("/")
        await eventually(partial(has_answered, asked + 90))
        for _ in range(100):
            await asyncio.sleep(0)
        assert unread_bytes(server) < 1 << 20
        client.close()
