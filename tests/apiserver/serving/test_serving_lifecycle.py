from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import AsyncIterator

import pytest
from patience import PATIENCE
from serving_harness import Http1Client, Http2Client, answering, client_context, eventually, secure_options, serving

from pilothouse.apiserver.http import Request, Response
from pilothouse.apiserver.serving.secure import SecureServing
from pilothouse.apiserver.serving.server import ListenEndpoint, Server, insecure_endpoint
from pilothouse.controlplane.certificates.paths import CertificatePaths


async def test_port_zero_picks_a_port_and_several_listeners_share_a_server(pki: CertificatePaths) -> None:
    server = Server(answering(b"hi"), [SecureServing(secure_options(pki)).endpoint, insecure_endpoint("127.0.0.1", 0)])
    await server.start()
    secure, plain = server.addresses
    assert server.port == secure[1] > 0
    client = await Http1Client.connect(plain[1], None)
    client.ask("/")
    assert (await client.answer()).body == b"hi"
    await server.shutdown(1)


async def test_an_address_that_is_taken_is_an_error(pki: CertificatePaths) -> None:
    async with serving(answering(b""), secure_options(pki)) as server:
        other = Server(answering(b""), [insecure_endpoint("127.0.0.1", 0), ListenEndpoint("127.0.0.1", server.port)])
        with pytest.raises(OSError, match="in use"):
            await other.start()


async def test_an_unspecified_address_serves_both_families() -> None:
    if not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no IPv6")
    server = Server(answering(b"hi"), [ListenEndpoint("0.0.0.0", 0)])
    await server.start()
    for host in ("127.0.0.1", "::1"):
        client = Http1Client(*await asyncio.open_connection(host, server.port))
        client.ask("/")
        assert (await client.answer()).body == b"hi"
    await server.shutdown(1)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::"])
def test_plain_http_is_for_this_machine_only(host: str) -> None:
    with pytest.raises(ValueError, match="loopback"):
        insecure_endpoint(host, 0)


async def test_no_signal_handlers_are_installed(pki: CertificatePaths) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    async with serving(answering(b""), secure_options(pki)):
        assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


async def test_shutdown_lets_requests_under_way_finish_and_takes_no_more(pki: CertificatePaths) -> None:
    asked, release = [], asyncio.Event()

    async def handler(request: Request) -> Response:
        asked.append(request.http_version)
        await release.wait()
        return Response(200, b"finished")

    async with serving(handler, secure_options(pki)) as server:
        idle = await Http1Client.connect(server.port, client_context(pki, alpn="http/1.1"))
        first = await Http1Client.connect(server.port, client_context(pki, alpn="http/1.1"))
        second = await Http2Client.connect(server.port, client_context(pki, alpn="h2"))
        first.ask("/")
        stream = second.ask("/")
        await second.until(lambda: second.h2.remote_settings.max_concurrent_streams == 100)
        await eventually(lambda: len(asked) == 2)
        port = server.port
        ending = asyncio.create_task(server.shutdown(10))
        assert await idle.end() == b""
        with pytest.raises(OSError):
            await Http1Client.connect(port, None)
        release.set()
        answer = await first.answer()
        assert (answer.body, answer.headers[b"connection"]) == (b"finished", b"close")
        assert await _raw_end(second, stream)
        await ending
        assert server.connections == 0


async def _raw_end(client: Http2Client, stream: int) -> bool:
    """The client library forgets its streams when a GOAWAY comes, so the bytes themselves are looked at."""
    async with asyncio.timeout(PATIENCE):
        data = await client.reader.read()
    return b"finished" in data and b"\x07\x00\x00\x00\x00\x00" in data


async def test_shutdown_cuts_off_what_does_not_end_in_time(pki: CertificatePaths) -> None:
    ends: list[str] = []

    async def body() -> AsyncIterator[bytes]:
        try:
            yield b"x"
            await asyncio.Event().wait()
        finally:
            ends.append("closed")

    async with serving(answering(body), secure_options(pki)) as server:
        client = await Http1Client.connect(server.port, client_context(pki, alpn="http/1.1"))
        client.ask("/")
        await client.head()
        await client.chunk()
        await server.shutdown(0.05)
        assert server.connections == 0
        assert await client.end() == b""
        await eventually(lambda: ends)


async def test_the_date_moves_on(pki: CertificatePaths) -> None:
    async with serving(answering(b""), secure_options(pki)) as server:
        client = await Http1Client.connect(server.port, client_context(pki, alpn="http/1.1"))
        dates: set[bytes] = set()
        async with asyncio.timeout(PATIENCE):
            while len(dates) < 2:
                client.ask("/")
                dates.add((await client.answer()).headers[b"date"])
                await asyncio.sleep(0.01)
