from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial

import h2.connection
import h2.events
import pytest
from patience import PATIENCE
from serving_harness import Http2Client, answering, client_context, eventually, secure_options, serving

from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.apiserver.serving.limits import Limits
from pilothouse.controlplane.certificates.paths import CertificatePaths
from pilothouse.machinery.errors import RequestEntityTooLarge

Connected = Callable[..., AbstractAsyncContextManager[Http2Client]]


@pytest.fixture
def connected(pki: CertificatePaths) -> Connected:
    """Serves a handler and connects to it."""

    @asynccontextmanager
    async def connect(
        handler: Handler, limits: Limits | None = None, window: int | None = None
    ) -> AsyncIterator[Http2Client]:
        async with serving(handler, secure_options(pki), limits=limits) as server:
            client = await Http2Client.connect(server.port, client_context(pki, alpn="h2"), window=window)
            yield client
            client.close()

    return connect


async def echo(request: Request) -> Response:
    body = await request.read_body(3_000_000)
    host = request.header(b"host")
    line = f"{request.method} {host} {request.path} ? {request.query_string} {request.http_version} {len(body)}"
    return Response(200, line.encode())


async def test_requests_and_answers_are_what_they_are_in_http_1(connected: Connected) -> None:
    async with connected(echo) as client:
        log = await client.get("/a%20b?x=%20+")
    assert log.body.decode() == "GET here /a b ? x=%20+ 2 0"
    assert log.headers[b"content-length"] == str(len(log.body)).encode()
    assert log.headers[b"date"].endswith(b"GMT")


async def test_many_requests_share_a_connection(connected: Connected) -> None:
    async with connected(echo) as client:
        for _ in range(47):
            streams = [client.ask(f"/{number}") for number in range(90)]
            logs = [await client.answer(stream) for stream in streams]
            client.h2.increment_flow_control_window(sum(len(log.body) for log in logs))
            assert [log.body.split()[2] for log in logs] == [b"/%d" % number for number in range(90)]


async def test_answers_come_in_the_order_in_which_they_are_ready(connected: Connected) -> None:
    gates = {"/0": asyncio.Event(), "/1": asyncio.Event()}

    async def handler(request: Request) -> Response:
        await gates[request.path].wait()
        return Response(200, request.path.encode())

    async with connected(handler) as client:
        first, second = client.ask("/0"), client.ask("/1")
        gates["/1"].set()
        assert (await client.answer(second)).body == b"/1"
        gates["/0"].set()
        assert (await client.answer(first)).body == b"/0"


async def test_a_large_body_is_granted_the_credit_it_needs(connected: Connected) -> None:
    async with connected(echo) as client:
        stream = client.open("/", "POST")
        left = 2_500_000
        while left:
            size = min(left, client.h2.local_flow_control_window(stream), 16_384)
            if not size:
                client.flush()
                await client.until(lambda: client.h2.local_flow_control_window(stream) > 0)
                continue
            left -= size
            client.h2.send_data(stream, b"x" * size, end_stream=not left)
        client.flush()
        assert (await client.answer(stream)).body.endswith(b" 2500000")


async def test_a_body_over_the_limit_is_refused_and_the_connection_lives_on(connected: Connected) -> None:
    async def handler(request: Request) -> Response:
        try:
            await request.read_body(1000)
        except RequestEntityTooLarge as error:
            return Response(413, error.message.encode())
        return Response(200, b"fine")

    async with connected(handler) as client:
        log = await client.get("/", "POST", body=b"x" * 10_000)
        assert (log.status, log.body) == (413, b"Request entity too large: limit is 1000")
        log = await client.get("/", "POST", body=b"x" * 10, headers=[("content-length", "10")])
        assert (log.status, log.body) == (200, b"fine")


async def test_an_early_answer_and_the_reset_of_its_stream_are_two_tls_records(pki: CertificatePaths) -> None:
    def ask(port: int) -> list[list[type]]:
        """Return the events of each record."""
        peer, found = h2.connection.H2Connection(), list[list[type]]()
        context = client_context(pki, alpn="h2")
        with (
            socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as tls,
        ):
            peer.initiate_connection()
            peer.send_headers(1, [(":method", "POST"), (":path", "/"), (":scheme", "https"), (":authority", "here")])
            tls.sendall(peer.data_to_send())
            while not found or h2.events.StreamReset not in found[-1]:
                found.append([type(event) for event in peer.receive_data(tls.recv(1 << 16))])
        return found

    async with serving(answering(b"no", 413), secure_options(pki)) as server:
        records = await asyncio.to_thread(ask, server.port)
    assert any(h2.events.StreamEnded in record for record in records[:-1])


async def test_an_answer_before_the_end_of_the_body_tells_the_client_to_stop(connected: Connected) -> None:
    async with connected(answering(b"no", 403)) as client:
        log = client.streams[client.open("/", "POST")]
        await client.until(lambda: log.reset is not None)
        assert (log.status, log.body, log.reset) == (403, b"no", 0)


async def test_a_client_that_waits_to_be_asked_for_its_body_is_asked(connected: Connected) -> None:
    async with connected(echo) as client:
        client.open("/", "POST", [("expect", "100-continue")])
        await client.until(lambda: any("Informational" in type(event).__name__ for event in client.events))


async def test_answers_to_head_have_a_length_and_no_body(connected: Connected) -> None:
    async with connected(answering(b"hello")) as client:
        log = await client.get("/", "HEAD")
    assert (log.headers[b"content-length"], log.body) == (b"5", b"")


@pytest.mark.parametrize("path", ["/%zz", "nonsense"])
async def test_bad_targets_are_answered_with_400(connected: Connected, path: str) -> None:
    async with connected(echo) as client:
        assert (await client.get(path)).status == 400
        assert (await client.get("/")).status == 200


async def test_heads_that_are_too_large_are_answered_with_431_and_the_connection_lives_on(connected: Connected) -> None:
    async with connected(echo, Limits(header_bytes=20_000)) as client:
        client.h2.remote_settings.max_header_list_size = 1 << 20
        assert (await client.get("/", headers=[("x", "x" * 9_000), ("y", "y" * 12_000)])).status == 431
        assert (await client.get("/")).status == 200


async def test_heads_of_many_frames_are_read(connected: Connected) -> None:
    async def handler(request: Request) -> Response:
        return Response(200, str(len(request.whole_header(b"x"))).encode())

    async with connected(handler) as client:
        assert (await client.get("/", headers=[("x", "~" * 40_000)])).body == b"40000"


async def test_a_stream_s_head_and_each_chunk_are_sent_at_once(connected: Connected) -> None:
    steps = [asyncio.Event() for _ in range(3)]

    async def body() -> AsyncIterator[bytes]:
        for number, step in enumerate(steps):
            await step.wait()
            yield b"%d" % number

    async with connected(answering(body)) as client:
        stream = client.ask("/")
        log = client.streams[stream]

        def has_come(size: int) -> bool:
            return len(log.body) == size

        await client.until(lambda: log.headers)
        for number, step in enumerate(steps):
            step.set()
            await client.until(partial(has_come, number + 1))
        assert (await client.answer(stream)).body == b"012"


@pytest.mark.parametrize("how", ["reset", "disconnect"])
async def test_an_idle_stream_is_closed_when_its_client_goes(connected: Connected, how: str) -> None:
    ends: list[str] = []

    async def body() -> AsyncIterator[bytes]:
        try:
            yield b"first"
            await asyncio.Event().wait()
        finally:
            ends.append("closed")

    async with connected(answering(body)) as client:
        stream = client.ask("/")
        await client.until(lambda: client.streams[stream].body)
        if how == "reset":
            client.h2.reset_stream(stream, 8)
            client.flush()
        else:
            client.close()
        await eventually(lambda: ends)


async def test_a_stream_that_fails_is_reset_and_the_connection_lives_on(connected: Connected) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield b"start"
        raise RuntimeError("no")

    async def handler(request: Request) -> Response:
        return Response(200, body()) if request.path == "/bad" else Response(200, b"fine")

    async with connected(handler) as client:
        log = await client.get("/bad")
        assert (log.ended, log.reset) == (False, 2)
        assert (await client.get("/good")).body == b"fine"


async def test_a_handler_that_fails_is_a_500(connected: Connected) -> None:
    async def handler(request: Request) -> Response:
        raise RuntimeError("no")

    async with connected(handler) as client:
        assert (await client.get("/")).status == 500


async def test_headers_of_the_connection_are_not_sent(connected: Connected) -> None:
    async def handler(request: Request) -> Response:
        return Response(200, b"", [(b"keep-alive", b"5"), (b"transfer-encoding", b"chunked"), (b"x", b"y")])

    async with connected(handler) as client:
        headers = (await client.get("/")).headers
    assert headers[b"x"] == b"y"
    assert not {b"keep-alive", b"transfer-encoding"} & headers.keys()


async def test_connection_close_asks_the_client_for_a_new_connection(connected: Connected) -> None:
    async def handler(request: Request) -> Response:
        return Response(200, b"bye", [(b"connection", b"close")])

    async with connected(handler) as client:
        assert (await client.get("/")).body == b"bye"
        assert await client.goaway() == 0
        await client.until(lambda: client.closed)


async def test_pings_are_answered(connected: Connected) -> None:
    async with connected(echo) as client:
        client.h2.ping(b"12345678")
        client.flush()
        await client.until(lambda: any(type(event).__name__ == "PingAckReceived" for event in client.events))
