from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest
from serving_harness import Http1Client, answering, client_context, eventually, secure_options, serving

from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.apiserver.serving.limits import Limits
from pilothouse.controlplane.certificates.paths import CertificatePaths
from pilothouse.machinery.errors import RequestEntityTooLarge

pytestmark = pytest.mark.usefixtures("each_parser")

Connected = Callable[..., AbstractAsyncContextManager[Http1Client]]


@pytest.fixture
def connected(pki: CertificatePaths) -> Connected:
    """Serves a handler and connects to it."""

    @asynccontextmanager
    async def connect(handler: Handler, limits: Limits | None = None) -> AsyncIterator[Http1Client]:
        async with serving(handler, secure_options(pki), limits=limits) as server:
            client = await Http1Client.connect(server.port, client_context(pki, alpn="http/1.1"))
            yield client
            client.close()

    return connect


async def echo(request: Request) -> Response:
    body = await request.read_body(100_000)
    line = f"{request.method} {request.path} ? {request.query_string} {request.http_version} {request.scheme} "
    return Response(200, line.encode() + body)


async def test_whole_bodies_come_with_their_length_and_the_date(connected: Connected) -> None:
    async with connected(answering(b"hello")) as client:
        client.ask("/")
        answer = await client.answer()
    assert (answer.status, answer.body, answer.headers[b"content-length"]) == (200, b"hello", b"5")
    assert answer.headers[b"date"].endswith(b"GMT")


async def test_paths_are_decoded_and_queries_are_not(connected: Connected) -> None:
    async with connected(echo) as client:
        client.ask("/a%20b%2Fc/%C3%A9?x=%20+&y")
        assert (await client.answer()).body.decode() == "GET /a b/c/é ? x=%20+&y 1.1 https "
        client.ask("http://elsewhere/p?q")
        assert (await client.answer()).body.decode() == "GET /p ? q 1.1 https "


@pytest.mark.parametrize("target", ["/%zz", "/%e", "nonsense"])
async def test_bad_targets_are_answered_with_400(connected: Connected, target: str) -> None:
    async with connected(echo) as client:
        client.ask(target)
        assert (await client.answer()).status == 400
        assert await client.end() == b""


async def test_what_is_no_request_is_answered_with_400(connected: Connected) -> None:
    async with connected(echo) as client:
        client.send(b"what is this\r\n\r\n")
        answer = await client.answer()
    assert (answer.status, answer.body, answer.headers[b"connection"]) == (400, b"400 Bad Request", b"close")


async def test_heads_that_are_too_large_are_answered_with_431(connected: Connected) -> None:
    async with connected(echo) as client:
        client.ask("/", headers=f"X: {'x' * (1 << 20)}\r\n")
        assert (await client.answer()).status == 431


@pytest.mark.parametrize(
    "headers", [f"X: {'x' * 900_000}\r\n", "X: y\r\n" * 5000, f"Authorization: Bearer {'t' * 20_000}\r\n"]
)
async def test_long_heads_are_read_like_others(connected: Connected, headers: str) -> None:
    async def handler(request: Request) -> Response:
        size = sum(len(name) + len(value) for name, value in request.headers)
        body = await request.read_body(1000)
        return Response(200, f"{request.path} {size > 9_000} ".encode() + body)

    async with connected(handler) as client:
        client.ask(f"/{'p' * 30_000}?q", "POST", headers, b"the body")
        assert (await client.answer()).body == b"/" + b"p" * 30_000 + b" True the body"
        client.ask("/a%20b", "POST", headers, b"two")
        client.ask("/after")
        assert (await client.answer()).body == b"/a b True two"
        assert (await client.answer()).body == b"/after False "


@pytest.mark.parametrize(
    "line",
    ["X : y", "Content-Length: x\r\nTransfer-Encoding: chunked", "Content-Length: 1\r\nContent-Length: 2", "X: \x01"],
)
async def test_long_heads_are_read_as_strictly_as_others(connected: Connected, line: str) -> None:
    async with connected(echo) as client:
        client.ask("/", "POST", f"Y: {'y' * 20_000}\r\n{line}\r\n")
        assert (await client.answer()).status == 400


async def test_answers_to_head_have_a_length_and_no_body(connected: Connected) -> None:
    async with connected(answering(b"hello")) as client:
        client.ask("/", "HEAD")
        assert (await client.answer(bodiless=True)).headers[b"content-length"] == b"5"
        client.ask("/")
        assert (await client.answer()).body == b"hello"


async def test_no_content_has_no_length(connected: Connected) -> None:
    async with connected(answering(b"", 204)) as client:
        client.ask("/")
        assert b"content-length" not in (await client.answer(bodiless=True)).headers


async def test_bodies_are_read_whole_or_in_chunks(connected: Connected) -> None:
    async with connected(echo) as client:
        client.ask("/", "POST", body=b"x" * 90_000)
        assert (await client.answer()).body.endswith(b" " + b"x" * 90_000)
        client.ask("/", "POST", "Transfer-Encoding: chunked\r\n")
        client.send(b"3\r\nabc\r\n")
        client.send(b"2\r\nde\r\n0\r\n\r\n")
        assert (await client.answer()).body.endswith(b" abcde")


async def test_a_client_that_waits_to_be_asked_for_its_body_is_asked(connected: Connected) -> None:
    async with connected(echo) as client:
        client.ask("/", "POST", "Expect: 100-continue\r\nContent-Length: 3\r\n")
        assert (await client.head()).status == 100
        client.send(b"abc")
        assert (await client.answer()).body.endswith(b" abc")


@pytest.mark.parametrize("framing", ["Content-Length: 1000000000\r\n", "Transfer-Encoding: chunked\r\n"])
async def test_a_body_over_the_limit_is_refused_and_not_taken_in(connected: Connected, framing: str) -> None:
    refused: list[str] = []

    async def handler(request: Request) -> Response:
        try:
            await request.read_body(100_000)
        except RequestEntityTooLarge as error:
            refused.append(error.message)
        return Response(413, b"too large")

    async with connected(handler) as client:
        client.ask("/", "POST", framing)
        for _ in range(20):
            client.send(b"5000\r\n" + b"x" * 0x5000 + b"\r\n")
        answer = await client.answer()
        assert await client.end() == b""
    assert (answer.status, answer.body, answer.headers[b"connection"]) == (413, b"too large", b"close")
    assert refused == ["Request entity too large: limit is 100000"]


async def test_a_body_that_nobody_reads_is_not_taken_in(connected: Connected) -> None:
    finish = asyncio.Event()

    async def handler(request: Request) -> Response:
        await finish.wait()
        return Response(200, b"done")

    async with connected(handler) as client:
        client.ask("/", "POST", "Content-Length: 1000000000\r\n")
        client.writer.transport.set_write_buffer_limits(high=0)
        sent = 0
        while sent < 64 << 20:
            client.send(b"x" * (1 << 20))
            sent += 1 << 20
            try:
                await asyncio.wait_for(client.writer.drain(), 0.5)
            except TimeoutError:
                break
        finish.set()
        assert sent < 64 << 20
        assert (await client.answer()).body == b"done"


async def test_pipelined_requests_are_answered_in_turn(connected: Connected) -> None:
    async with connected(echo) as client:
        for number in range(5):
            client.ask(f"/{number}")
        bodies = [(await client.answer()).body for _ in range(5)]
    assert [body.split()[1] for body in bodies] == [b"/0", b"/1", b"/2", b"/3", b"/4"]


async def test_a_request_may_come_a_byte_at_a_time(connected: Connected) -> None:
    async with connected(echo) as client:
        for byte in b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi":
            client.send(bytes((byte,)))
            await client.writer.drain()
        assert (await client.answer()).body == b"POST /x ?  1.1 https hi"


async def test_an_http_1_0_client_gets_its_stream_until_the_connection_closes(connected: Connected) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield b"one"
        yield b"two"

    async with connected(answering(body)) as client:
        client.send(b"GET / HTTP/1.0\r\n\r\n")
        answer = await client.answer()
    assert answer.body == b"onetwo"
    assert b"transfer-encoding" not in answer.headers


async def test_a_stream_s_head_and_each_chunk_are_sent_at_once(connected: Connected) -> None:
    steps = [asyncio.Event() for _ in range(3)]

    async def body() -> AsyncIterator[bytes]:
        for number, step in enumerate(steps):
            await step.wait()
            yield b"chunk %d" % number

    async with connected(answering(body)) as client:
        client.ask("/")
        assert (await client.head()).headers[b"transfer-encoding"] == b"chunked"
        for number, step in enumerate(steps):
            step.set()
            assert await client.chunk() == b"chunk %d" % number
        assert await client.chunk() == b""


async def test_an_idle_stream_is_closed_when_its_client_goes(connected: Connected) -> None:
    ends: list[str] = []

    async def body() -> AsyncIterator[bytes]:
        try:
            yield b"first"
            await asyncio.Event().wait()
        finally:
            ends.append("closed")

    async with connected(answering(body)) as client:
        client.ask("/")
        await client.head()
        assert await client.chunk() == b"first"
        client.close()
        await eventually(lambda: ends)


async def test_a_handler_learns_that_its_client_has_gone_and_may_finish_its_work(connected: Connected) -> None:
    steps: list[str] = []

    async def handler(request: Request) -> Response:
        steps.append("asked")
        assert request.disconnected is not None
        await request.disconnected()
        await asyncio.sleep(0)
        steps.append("done")
        return Response(200, b"")

    async with connected(handler) as client:
        client.ask("/")
        await eventually(lambda: steps)
        client.close()
        await eventually(lambda: steps == ["asked", "done"])


async def test_a_stream_with_a_declared_length_is_not_chunked(connected: Connected) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield b"abc"
        yield b"def"

    async def handler(request: Request) -> Response:
        return Response(200, body(), [(b"content-length", b"6")])

    async with connected(handler) as client:
        client.ask("/")
        answer = await client.answer()
    assert answer.body == b"abcdef"
    assert b"transfer-encoding" not in answer.headers


async def test_a_handler_that_fails_is_a_500_and_the_connection_lives_on(connected: Connected) -> None:
    async def handler(request: Request) -> Response:
        if request.path == "/":
            raise RuntimeError("no")
        return Response(200, b"yes")

    async with connected(handler) as client:
        client.ask("/")
        assert (await client.answer()).status == 500
        client.ask("/again")
        assert (await client.answer()).body == b"yes"


async def test_a_stream_that_fails_is_cut_off(connected: Connected) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield b"start"
        raise RuntimeError("no")

    async with connected(answering(body)) as client:
        client.ask("/")
        await client.head()
        assert await client.chunk() == b"start"
        assert b"0\r\n\r\n" not in await client.end()


async def test_a_header_with_a_line_break_is_not_sent(connected: Connected) -> None:
    async def handler(request: Request) -> Response:
        return Response(200, b"", [(b"x", b"a\r\nset-cookie: b")])

    async with connected(handler) as client:
        client.ask("/")
        answer = await client.answer()
    assert answer.status == 500
    assert b"set-cookie" not in answer.headers


async def test_large_bodies_arrive_whole(connected: Connected) -> None:
    body = bytes(range(256)) * 50_000
    async with connected(answering(body)) as client:
        client.ask("/")
        assert (await client.answer()).body == body


async def test_connection_close_is_honoured_in_both_directions(connected: Connected) -> None:
    async def handler(request: Request) -> Response:
        return Response(200, b"", [(b"connection", b"close")] if request.path == "/close" else [])

    async with connected(handler) as client:
        client.ask("/close")
        assert (await client.answer()).headers[b"connection"] == b"close"
        assert await client.end() == b""
    async with connected(handler) as client:
        client.ask("/", headers="Connection: close\r\n")
        assert (await client.answer()).headers[b"connection"] == b"close"
        assert await client.end() == b""
