from __future__ import annotations

import asyncio
import logging

import pytest
from serving_harness import Http1Client, Http2Client, client_context, eventually, secure_options, serving

from pilothouse.apiserver.http import Request, Response
from pilothouse.apiserver.serving.upgrade import raw_connection
from pilothouse.controlplane.certificates.paths import CertificatePaths

pytestmark = pytest.mark.usefixtures("each_parser")

ASK = "Connection: Upgrade\r\nUpgrade: echo\r\n"
ACCEPTED = [(b"connection", b"Upgrade"), (b"upgrade", b"echo")]


async def echo(transport: asyncio.Transport, received: bytes) -> None:
    raw = raw_connection(transport, received)
    while data := await raw.reader.read(65536):
        raw.writer.write(data.upper())
        await raw.writer.drain()


async def handler(request: Request) -> Response:
    if request.path == "/declined":
        return Response(403, b"no")
    return Response(101, headers=list(ACCEPTED), upgrade=echo)


async def connect(pki: CertificatePaths, port: int) -> Http1Client:
    return await Http1Client.connect(port, client_context(pki, alpn="http/1.1"))


async def test_an_upgraded_connection_belongs_to_its_handler(
    pki: CertificatePaths, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "pilothouse"):
        async with serving(handler, secure_options(pki)) as server:
            client = await connect(pki, server.port)
            client.ask("/", headers=ASK)
            answer = await client.head()
            assert (answer.status, answer.headers[b"upgrade"]) == (101, b"echo")
            assert not {b"content-length", b"transfer-encoding"} & answer.headers.keys()
            client.send(b"hello")
            assert await client.reader.readexactly(5) == b"HELLO"
            client.close()
            await eventually(lambda: server.connections == 0)
    assert not caplog.records


async def test_what_came_with_the_request_is_not_lost(pki: CertificatePaths) -> None:
    async with serving(handler, secure_options(pki)) as server:
        client = await connect(pki, server.port)
        client.send(b"GET / HTTP/1.1\r\nHost: a\r\n" + ASK.encode() + b"\r")
        await client.writer.drain()
        client.send(b"\nearly")
        client.send(b" bird")
        assert (await client.head()).status == 101
        assert await client.reader.readexactly(10) == b"EARLY BIRD"
        client.close()


async def test_a_large_transfer_passes_in_both_directions(pki: CertificatePaths) -> None:
    async with serving(handler, secure_options(pki)) as server:
        client = await connect(pki, server.port)
        client.ask("/", headers=ASK)
        await client.head()
        client.send(b"x" * 5_000_000)
        assert await client.reader.readexactly(5_000_000) == b"X" * 5_000_000
        client.close()


async def test_a_declined_upgrade_is_an_ordinary_answer(pki: CertificatePaths) -> None:
    async with serving(handler, secure_options(pki)) as server:
        client = await connect(pki, server.port)
        client.ask("/declined", headers=ASK)
        client.ask("/declined")
        assert [(await client.answer()).status for _ in range(2)] == [403, 403]


async def test_who_did_not_ask_is_not_upgraded(pki: CertificatePaths) -> None:
    async with serving(handler, secure_options(pki)) as server:
        client = await connect(pki, server.port)
        client.ask("/")
        assert (await client.answer()).status == 500
        other = await Http2Client.connect(server.port, client_context(pki, alpn="h2"))
        assert (await other.get("/")).status == 500


async def test_the_server_s_end_is_the_end_of_upgraded_connections(pki: CertificatePaths) -> None:
    ends: list[str] = []

    async def stuck(transport: asyncio.Transport, received: bytes) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ends.append("ended")

    async def handler(request: Request) -> Response:
        return Response(101, headers=list(ACCEPTED), upgrade=stuck)

    async with serving(handler, secure_options(pki)) as server:
        client = await connect(pki, server.port)
        client.ask("/", headers=ASK)
        await client.head()
        await server.shutdown(0.05)
        assert ends == ["ended"]
        assert await client.end() == b""
