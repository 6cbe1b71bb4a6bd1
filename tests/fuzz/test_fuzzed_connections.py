"""Bytes on a connection: no sequence of them crashes the server, leaves a task behind or hides a second request."""

from __future__ import annotations

import asyncio

import pytest
from fuzz_budget import budget
from hypothesis import given
from hypothesis import strategies as st
from transport_double import Pipe

from pilothouse.apiserver import Request, Response
from pilothouse.apiserver.serving.http1 import Http1Connection
from pilothouse.apiserver.serving.limits import Limits
from pilothouse.apiserver.serving.state import ServingState


class Conversation:
    """What a server made of the bytes of one client."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, bytes]] = []
        self.written = b""

    async def run(self, sent: bytes, piece: int = 1 << 20) -> None:
        before = asyncio.all_tasks()
        pipe = Pipe()
        connection = Http1Connection(ServingState(self._answer, Limits()), asyncio.get_running_loop())
        connection.connection_made(pipe)
        for at in range(0, len(sent), piece):
            if not pipe.closing:
                connection.data_received(sent[at : at + piece])
            for _ in range(4):
                await asyncio.sleep(0)
        connection.connection_lost(None)
        for _ in range(10):
            await asyncio.sleep(0)
        self.written = pipe.written
        assert asyncio.all_tasks() == before, "a task was left behind"

    async def _answer(self, request: Request) -> Response:
        body = await request.read_body(1 << 20)
        self.requests.append((request.method, request.path, body))
        return Response(200, b"fine")


LINES = st.sampled_from(
    [
        b"GET / HTTP/1.1",
        b"POST /a HTTP/1.1",
        b"GET /b HTTP/1.0",
        b"GET  / HTTP/1.1",
        b"PRI * HTTP/2.0",
        b"GET /",
        b"",
        b"Host: a",
        b"Host: a",
        b"Content-Length: 3",
        b"Content-Length: 0",
        b"Content-Length: +3",
        b"Content-Length: 3, 3",
        b"Transfer-Encoding: chunked",
        b"Transfer-Encoding: identity",
        b"Transfer-Encoding : chunked",
        b" folded",
        b"\tx",
        b"Connection: close",
        b"Connection: upgrade",
        b"Upgrade: websocket",
        b"Expect: 100-continue",
        b"X: \x00",
        b"X\xff: y",
        b"3",
        b"abc",
        b"0",
        b"ffffffffffffffff",
        b"3;a=b",
        b"-1",
        b"Trailer: x",
        b": x",
        b"X" * 9000,
    ]
)
ENDS = st.sampled_from([b"\r\n", b"\r\n", b"\r\n", b"\n", b"\r", b"\r\n\r\n"])
TEXT = st.lists(st.tuples(LINES, ENDS).map(b"".join), max_size=14).map(b"".join)


@budget(250)
@given(sent=st.one_of(TEXT, st.binary(max_size=200)), piece=st.integers(1, 40))
async def test_no_bytes_make_an_http_1_connection_fail(sent: bytes, piece: int) -> None:
    conversation = Conversation()
    await conversation.run(sent, piece)
    assert conversation.written == b"" or conversation.written.startswith(b"HTTP/1.1 ")


@budget(150)
@given(sent=TEXT, piece=st.integers(1, 40))
async def test_what_is_read_does_not_depend_on_how_it_arrives(sent: bytes, piece: int) -> None:
    whole, pieces = Conversation(), Conversation()
    await whole.run(sent)
    await pieces.run(sent, piece)
    assert whole.requests == pieces.requests


SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
HIDING: dict[str, bytes] = {
    "a length and a coding": b"Content-Length: 40\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a coding and a length": b"Transfer-Encoding: chunked\r\nContent-Length: 40\r\n\r\n0\r\n\r\n",
    "two lengths": b"Content-Length: 0\r\nContent-Length: 40\r\n\r\n",
    "a list of lengths": b"Content-Length: 0, 40\r\n\r\n",
    "a signed length": b"Content-Length: +0\r\n\r\n",
    "a negative length": b"Content-Length: -1\r\n\r\n",
    "a length that overflows": b"Content-Length: 18446744073709551616\r\n\r\n",
    "a length in hex": b"Content-Length: 0x0\r\n\r\n",
    "an unknown coding": b"Transfer-Encoding: gzip\r\n\r\n0\r\n\r\n",
    "a coding that only looks like chunked": b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "chunked and then something": b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "two codings": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    "a blank before the colon": b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "a folded line": b"X: a\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a line feed alone": b"X: a\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a carriage return alone": b"X: a\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a NUL in a value": b"X: a\0b\r\n\r\n",
    "no name": b": a\r\n\r\n",
    "a chunk size with a sign": b"Transfer-Encoding: chunked\r\n\r\n+0\r\n\r\n",
    "a chunk size that overflows": b"Transfer-Encoding: chunked\r\n\r\n10000000000000000\r\n\r\n",
    "a chunk without its end": b"Transfer-Encoding: chunked\r\n\r\n1\r\nab0\r\n\r\n",
}


@pytest.mark.parametrize("name", HIDING)
@pytest.mark.parametrize("padding", [b"", b"Y: " + b"y" * 20_000 + b"\r\n"], ids=["short", "long"])
async def test_a_request_whose_end_is_in_doubt_is_refused_and_nothing_after_it_is_read(
    name: str, padding: bytes
) -> None:
    conversation = Conversation()
    await conversation.run(b"POST / HTTP/1.1\r\nHost: a\r\n" + padding + HIDING[name] + SMUGGLED)
    assert [path for _, path, _ in conversation.requests if path == "/smuggled"] == []


@pytest.mark.parametrize("target", ["/%zz", "/%", "nonsense", "a:b", "/a b", "/\x01", "http:/x"])
async def test_a_target_that_is_none_is_refused(target: str) -> None:
    conversation = Conversation()
    await conversation.run(f"GET {target} HTTP/1.1\r\nHost: a\r\n\r\n".encode() + SMUGGLED)
    assert conversation.written.startswith(b"HTTP/1.1 400 ")
    assert conversation.requests == []
