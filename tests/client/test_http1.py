"""HTTP/1.1 of the client: framing of responses in any fragmentation, and the reuse of connections on real sockets."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.client.config.model import ClientConfig, ConfigError
from pilothouse.client.rest import http_transport
from pilothouse.client.rest.errors import ConnectionFailed, ConnectionRefused, RequestTimedOut
from pilothouse.client.rest.http1 import MAX_UNREAD, MalformedResponse, ResponseParser
from pilothouse.client.rest.http_transport import HttpTransport
from pilothouse.client.rest.transport import HttpRequest

ZIPPED = gzip.compress(b"hello world")
MEMBERS = gzip.compress(b"hello ") + gzip.compress(b"world")
RESPONSES = {
    b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello world": True,
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n6\r\nhello \r\n5;x=y\r\nworld\r\n0\r\n\r\n": True,
    b"HTTP/1.1 200\r\ntransfer-encoding: Chunked\r\n\r\nB\r\nhello world\r\n0\r\na: b\r\nc: d\r\n\r\n": True,
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length:11\r\n\r\nhello world": True,
    b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 11\r\n\r\nhello world": False,
    b"HTTP/1.0 200 OK\r\ncontent-length: 11\r\n\r\nhello world": False,
    b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n%b" % (len(ZIPPED), ZIPPED): True,
    b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n%b" % (len(MEMBERS), MEMBERS): True,
    b"HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\nhello worldHTTP/1.1 200 OK": False,
}
MALFORMED = (
    b"nonsense\r\n\r\n",
    b"HTTP/2 200 OK\r\n\r\n",
    b"HTTP/1.1 OK\r\n\r\n",
    b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nno header\r\n\r\n",
    b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
    b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n",
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n+5\r\nhello\r\n",
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello world\r\n",
    b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 3\r\n\r\nabc",
)


@given(st.sampled_from([*RESPONSES]), st.lists(st.integers(1, 40), min_size=1))
def test_a_response_is_the_same_in_any_fragmentation(response: bytes, sizes: list[int]) -> None:
    parser, body, at, turn = ResponseParser("GET"), b"", 0, 0
    while at < len(response) and not parser.is_complete:
        size = sizes[turn % len(sizes)]
        body += parser.feed(response[at : at + size])
        at, turn = at + size, turn + 1
    assert (parser.status, parser.is_complete, body) == (200, True, b"hello world")
    if at >= len(response):
        whole = ResponseParser("GET")
        assert whole.feed(response) == b"hello world"
        assert whole.is_reusable == RESPONSES[response]


@pytest.mark.parametrize("response", MALFORMED)
def test_a_malformed_response_is_refused(response: bytes) -> None:
    with pytest.raises(MalformedResponse):
        ResponseParser("GET").feed(response)


def test_a_body_without_length_ends_with_its_connection() -> None:
    parser = ResponseParser("GET")
    assert parser.feed(b"HTTP/1.1 200 OK\r\nWarning: 1\r\nwarning: 2\r\n\r\nhello") == b"hello"
    assert not parser.is_complete
    parser.end()
    assert (parser.is_complete, parser.is_reusable, parser.headers) == (True, False, {"warning": "1, 2"})


def test_an_incomplete_body_is_an_error() -> None:
    for response in [*RESPONSES][:3]:
        parser = ResponseParser("GET")
        parser.feed(response[:-3])
        with pytest.raises(MalformedResponse, match="before the response was complete"):
            parser.end()


@pytest.mark.parametrize("head", [b"HTTP/1.1 204 No Content\r\n\r\n", b"HTTP/1.1 304 Not Modified\r\n\r\n"])
def test_some_responses_have_no_body(head: bytes) -> None:
    parser = ResponseParser("GET")
    parser.feed(head)
    assert parser.is_complete
    answer_to_head = ResponseParser("HEAD")
    answer_to_head.feed(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n")
    assert answer_to_head.is_complete


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"


@asynccontextmanager
async def served(serve: Serve) -> AsyncIterator[HttpTransport]:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    listener = await asyncio.start_server(connected, "127.0.0.1", 0)
    transport = HttpTransport(ClientConfig(host=f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/prefix"))
    try:
        yield transport
    finally:
        await transport.close()
        listener.close()


async def test_a_connection_is_reused_and_requests_are_complete() -> None:
    heads: list[list[str]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append([])
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            heads[-1].append(head)
            if "content-length: 3" in head:
                assert await reader.readexactly(3) == b"abc"
            writer.write(OK)

    async with served(serve) as transport:
        for method, body in (("GET", b""), ("POST", b"abc"), ("DELETE", b"")):
            response = await transport.send(HttpRequest(method, "/x?a=b", {"X-Own": "1"}, body))
            assert await response.read() == b"{}"
            await response.close()
        with pytest.raises(ValueError, match="control character"):
            await transport.send(HttpRequest("GET", "/x", {"a": "b\r\nc: d"}))
        with pytest.raises(ValueError, match="contains a space"):
            await transport.send(HttpRequest("GET", "/x y"))
    [[get, post, delete]] = heads
    assert get.startswith("GET /prefix/x?a=b HTTP/1.1\r\nhost: 127.0.0.1:")
    assert "x-own: 1\r\n" in get
    assert "content-length" not in get
    assert post.endswith("content-length: 3\r\n\r\n")
    assert delete.endswith("content-length: 0\r\n\r\n")


@pytest.mark.parametrize(("method", "succeeds"), [("GET", True), ("PUT", False)])
async def test_only_a_read_is_sent_again_when_the_server_closes_an_idle_connection(method: str, succeeds: bool) -> None:
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK)
        await reader.readuntil(b"\r\n\r\n")  # closes instead of answering

    async with served(serve) as transport:
        await (await transport.send(HttpRequest("GET", "/"))).read()
        if succeeds:
            assert await (await transport.send(HttpRequest(method, "/"))).read() == b"{}"
        else:
            with pytest.raises(ConnectionFailed):
                await transport.send(HttpRequest(method, "/"))
    assert connections == 1 + succeeds


async def test_an_unused_connection_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_transport, "IDLE_TIMEOUT", 0.01)
    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK)
        await reader.read()
        ended.set()

    async with served(serve) as transport:
        await (await transport.send(HttpRequest("GET", "/"))).read()
        await ended.wait()


async def test_a_stream_is_read_as_it_arrives_with_back_pressure() -> None:
    size, accepted, more, began = MAX_UNREAD, 0, asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal accepted
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nfirst\r\n")
        await more.wait()
        for _ in range(40):
            writer.write(b"%x\r\n%b\r\n" % (size, b"x" * size))
            await writer.drain()
            accepted += 1
            began.set()
        writer.write(b"0\r\n\r\n")

    async with served(serve) as transport:
        response = await transport.send(HttpRequest("GET", "/"))
        chunks = response.chunks()
        assert await anext(chunks) == b"first"
        more.set()
        await began.wait()
        before = -1
        while accepted != before:  # the server stalls: nobody reads
            before = accepted
            await asyncio.sleep(0.05)
        assert accepted < 40
        assert sum([len(chunk) async for chunk in chunks]) == 40 * size


async def test_a_closed_or_late_response_ends_its_connection() -> None:
    ended: asyncio.Queue[bool] = asyncio.Queue()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        if b"/late" not in request:
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\npart")
        await reader.read()
        ended.put_nowait(True)

    async with served(serve) as transport:
        response = await transport.send(HttpRequest("GET", "/"))
        await response.close()
        await ended.get()
        with pytest.raises(RequestTimedOut):
            await transport.send(HttpRequest("GET", "/late", timeout=0.05))
        with pytest.raises(RequestTimedOut):
            await (await transport.send(HttpRequest("GET", "/", timeout=0.05))).read()


async def test_a_cancelled_request_ends_its_connection() -> None:
    received, ended = asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        received.set()
        await reader.read()
        ended.set()

    async with served(serve) as transport:
        sending = asyncio.ensure_future(transport.send(HttpRequest("GET", "/")))
        await received.wait()
        sending.cancel()
        await ended.wait()


async def test_a_host_without_a_listener_refuses_and_without_a_scheme_is_an_error() -> None:
    listener = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    listener.close()
    await listener.wait_closed()
    for host in ("127.0.0.1", "localhost"):
        with pytest.raises(ConnectionRefused, match="cannot connect to"):
            await HttpTransport(ClientConfig(host=f"http://{host}:{port}")).send(HttpRequest("POST", "/"))
    with pytest.raises(ConfigError, match="unsupported scheme"):
        await HttpTransport(ClientConfig(host="ftp://here")).send(HttpRequest("GET", "/"))
