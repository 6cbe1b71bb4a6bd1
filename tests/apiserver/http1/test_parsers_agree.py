"""Both HTTP/1.1 parsers accept and refuse the same messages, however they are cut into segments."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from patience import PATIENCE
from serving_harness import eventually
from transport_double import Pipe

from pilothouse.apiserver.http import Request, Response
from pilothouse.apiserver.http1.framing import BadMessage
from pilothouse.apiserver.http1.parser import Mark, Parsers, ResponseHead, chosen_parsers, in_python
from pilothouse.apiserver.serving.http1 import Http1Connection
from pilothouse.apiserver.serving.limits import Limits
from pilothouse.apiserver.serving.state import ServingState

_GET, _POST = b"GET / HTTP/1.1\r\nHost: a\r\n", b"POST / HTTP/1.1\r\nHost: a\r\n"
_CHUNKED = _POST + b"Transfer-Encoding: chunked\r\n\r\n"
_OK = b"HTTP/1.1 200 OK\r\n"

REQUESTS = {
    "line ends without CR": b"GET / HTTP/1.1\nHost: a\n\n",
    "one line end without CR": b"GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n",
    "empty line without CR": b"GET / HTTP/1.1\r\nHost: a\r\n\n",
    "folded field": _GET + b"X: a\r\n b\r\n\r\n",
    "folded first field": b"GET / HTTP/1.1\r\n Host: a\r\n\r\n",
    "no host": b"GET / HTTP/1.1\r\n\r\n",
    "two hosts": _GET + b"Host: b\r\n\r\n",
    "no host in 1.0": b"GET / HTTP/1.0\r\n\r\n",
    "the same length twice": _POST + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
    "two lengths": _POST + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
    "two spellings of a length": _POST + b"Content-Length: 3\r\nContent-Length: 03\r\n\r\nabc",
    "list of lengths": _POST + b"Content-Length: 3, 3\r\n\r\nabc",
    "signed length": _POST + b"Content-Length: +3\r\n\r\nabc",
    "empty length": _POST + b"Content-Length:\r\n\r\nabc",
    "length beyond 64 bits": _POST + b"Content-Length: 18446744073709551616\r\n\r\nabc",
    "length of 5000 digits": _POST + b"Content-Length: " + b"1" * 5000 + b"\r\n\r\nabc",
    "length with zeros": _POST + b"Content-Length: 0000003\r\n\r\nabc",
    "chunks and a length": _POST + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    "chunks and a bad length": _POST + b"Content-Length: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks in 1.0": b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "another coding": _POST + b"Transfer-Encoding: gzip\r\n\r\n0\r\n\r\n",
    "chunked twice": _POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "version 2.0": b"GET / HTTP/2.0\r\nHost: a\r\n\r\n",
    "version 1.2": b"GET / HTTP/1.2\r\nHost: a\r\n\r\n",
    "no version": b"GET /\r\n\r\n",
    "version in lower case": b"GET / http/1.1\r\nHost: a\r\n\r\n",
    "empty line first": b"\r\n" + _GET + b"\r\n",
    "two blanks": b"GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
    "blank before the colon": _GET + b"X : y\r\n\r\n",
    "no colon": _GET + b"Xy\r\n\r\n",
    "no name": _GET + b": y\r\n\r\n",
    "CR in a value": _GET + b"X: a\rb\r\n\r\n",
    "tabs around a value": _GET + b"X:\ta\tb \t\r\n\r\n",
    "CONNECT": b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n",
    "asterisk": b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
    "keep-alive in 1.0": b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    "close among others": _GET + b"Connection: x\r\nConnection: y, Close\r\n\r\n",
    "expected continue": _POST + b"Expect: 100-Continue\r\nContent-Length: 3\r\n\r\nabc",
    "long head": _GET + b"X: " + b"y" * 70_000 + b"\r\n\r\n",
    "huge head": _GET + b"X: " + b"y" * (1 << 20) + b"\r\n\r\n",
    "many fields": _GET + b"X: y\r\n" * 5000 + b"\r\n",
    "too many fields": _GET + b"X:\r\n" * 40_000 + b"\r\n",
    "no chunk size": _CHUNKED + b"\r\n",
    "bad chunk size": _CHUNKED + b"xyz\r\n",
    "negative chunk size": _CHUNKED + b"-1\r\n",
    "chunk size with a prefix": _CHUNKED + b"0x3\r\nabc\r\n0\r\n\r\n",
    "chunk size with an underscore": _CHUNKED + b"1_0\r\n",
    "chunk size of 17 digits": _CHUNKED + b"00000000000000003\r\nabc\r\n0\r\n\r\n",
    "chunk size of 16 digits": _CHUNKED + b"0000000000000003\r\nabc\r\n0\r\n\r\n",
    "blank after the chunk size": _CHUNKED + b"3 \r\nabc\r\n0\r\n\r\n",
    "chunk lines without CR": _CHUNKED + b"3\nabc\n0\n\n",
    "chunk extension": _CHUNKED + b'3;a="b c"\r\nabc\r\n0;x\r\n\r\n',
    "line end in a chunk extension": _CHUNKED + b"3;a\nb\r\nabc\r\n0\r\n\r\n",
    "control in a chunk extension": _CHUNKED + b"3;a\x01b\r\nabc\r\n0\r\n\r\n",
    "long chunk extension": _CHUNKED + b"3;" + b"x" * 17_000 + b"\r\nabc\r\n0\r\n\r\n",
    "chunk longer than its size": _CHUNKED + b"3\r\nabcd\r\n0\r\n\r\n",
    "trailers": _CHUNKED + b"3\r\nabc\r\n0\r\nX: y\r\nZ: \r\n\r\n",
    "length in trailers": _CHUNKED + b"0\r\nContent-Length: 3\r\n\r\n",
    "bad trailer": _CHUNKED + b"0\r\nX y: z\r\n\r\n",
    "folded trailer": _CHUNKED + b"0\r\nX: y\r\n z\r\n\r\n",
    "trailer without CR": _CHUNKED + b"0\r\nX: y\n\r\n\r\n",
    "two requests": _POST + b"Content-Length: 3\r\n\r\nabc" + _GET + b"\r\n",
    "two requests with chunks": _CHUNKED + b"3\r\nabc\r\n0\r\n\r\n" + _GET + b"\r\n",
}

RESPONSES: dict[str, tuple[bytes, ...]] = {
    "length": (_OK + b"Content-Length: 3\r\n\r\nabc",),
    "no length": (_OK + b"\r\nabc", b""),
    "empty": (_OK + b"Content-Length: 0\r\n\r\n",),
    "bytes after the end": (_OK + b"Content-Length: 1\r\n\r\nabHTTP",),
    "no content": (b"HTTP/1.1 204 No Content\r\n\r\n",),
    "not modified": (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\n",),
    "chunks": (_OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n",),
    "chunks and a length": (_OK + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",),
    "another coding": (_OK + b"Transfer-Encoding: gzip\r\n\r\nabc", b""),
    "informational": (b"HTTP/1.1 100 C\r\n\r\nHTTP/1.1 103 E\r\nX: y\r\n\r\n" + _OK + b"Content-Length: 0\r\n\r\n",),
    "switching": (b"HTTP/1.1 101 S\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nabc",),
    "close": (_OK + b"Connection: close\r\nContent-Length: 0\r\n\r\n",),
    "1.0": (b"HTTP/1.0 200 OK\r\n\r\nabc", b""),
    "keep-alive in 1.0": (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n",),
    "no reason": (b"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n",),
    "line ends without CR": (b"HTTP/1.1 200 OK\nContent-Length: 0\n\n",),
    "cut body": (_OK + b"Content-Length: 3\r\n\r\nab", b""),
    "cut chunk": (_OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nab", b""),
    "fault behind a chunk": (_OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nx\r\n",),
    "cut head": (b"HTTP/1.1 20", b""),
    "nothing": (b"",),
    "two lengths": (_OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",),
    "huge head": (_OK + b"X: " + b"y" * 70_000 + b"\r\nContent-Length: 0\r\n\r\n",),
    "status 600": (b"HTTP/1.1 600 OK\r\nContent-Length: 0\r\n\r\n",),
    "another protocol": (b"SSH-2.0-x\r\n\r\n",),
    "folded field": (_OK + b"X: a\r\n b\r\nContent-Length: 0\r\n\r\n",),
}


async def echo(request: Request) -> Response:
    body = await request.read_body(1 << 20)
    fields = b"".join(b"%b=%b;" % field for field in request.headers)
    return Response(200, f"{request.method} {request.path} {request.http_version} ".encode() + fields + body)


@pytest.mark.parametrize("piece", [1 << 20, 7])
@pytest.mark.parametrize("name", REQUESTS)
def test_requests_get_the_same_answer(name: str, piece: int) -> None:
    data = REQUESTS[name]
    if piece < 100 and len(data) > 10_000:
        piece = 4000
    assert answers(in_python(), data, piece) == answers(chosen_parsers(), data, piece)


_VALID = (REQUESTS["trailers"], REQUESTS["two requests"], _GET + b"Connection: close\r\nX: y\r\n\r\n")


@given(st.sampled_from(_VALID), st.integers(0, 90), st.binary(max_size=3), st.integers(0, 3))
@settings(max_examples=300, deadline=None)
def test_a_request_with_a_random_fault_gets_the_same_answer(data: bytes, at: int, new: bytes, old: int) -> None:
    faulty = data[:at] + new + data[at + old :]
    assert answers(in_python(), faulty, 1 << 20) == answers(chosen_parsers(), faulty, 1 << 20)


def answers(parsers: Parsers, data: bytes, piece: int) -> tuple[bytes, bool]:
    """What a connection writes when it gets the data in pieces, and whether it closes."""

    async def exchange() -> tuple[bytes, bool]:
        transport, state = Pipe(), ServingState(echo, Limits())
        state.parsers = parsers
        connection = Http1Connection(state, asyncio.get_running_loop())
        connection.connection_made(transport)
        for at in range(0, len(data), piece):
            connection.data_received(data[at : at + piece])
            for _ in range(10):
                await asyncio.sleep(0)
        for _ in range(len(data) // 1000 + 20):  # a turn of the loop takes 16 KiB
            await asyncio.sleep(0)
        written, closing = transport.written, transport.is_closing()
        connection.connection_lost(None)
        await eventually(lambda: len(asyncio.all_tasks()) == 1)
        return re.sub(rb"date: [^\r]*\r\n", b"", written), closing

    return asyncio.run(exchange())


@pytest.mark.parametrize("method", [b"GET", b"HEAD"])
@pytest.mark.parametrize("piece", [1 << 20, 5])
@pytest.mark.parametrize("name", RESPONSES)
def test_responses_are_read_the_same(name: str, piece: int, method: bytes) -> None:
    first, *end = RESPONSES[name]
    pieces = [first[at : at + piece] for at in range(0, len(first), piece)] or [first]
    assert read(in_python(), method, [*pieces, *end]) == read(chosen_parsers(), method, [*pieces, *end])


def read(parsers: Parsers, method: bytes, pieces: Sequence[bytes]) -> list[object]:
    """Heads, the joined body, its end or the fault, and whether the connection closes."""
    parser, found = parsers.response(), list[object]()
    parser.request(method, b"/", [(b"host", b"a")])
    body, has_ended = b"", False
    try:
        for piece in pieces:
            for event in parser.receive(piece) if not has_ended else ():
                if isinstance(event, ResponseHead):
                    found.append((event.status, event.headers))
                elif isinstance(event, Mark):
                    has_ended = True
                else:
                    body += event
        found.append((has_ended, parser.should_close() if has_ended else None))
    except BadMessage as error:
        found.append(str(error))
    return [*found, body]


@pytest.mark.parametrize("framing", [(b"content-length", b"5"), (b"transfer-encoding", b"chunked")])
def test_requests_are_written_the_same(framing: tuple[bytes, bytes]) -> None:
    written = []
    for parsers in (in_python(), chosen_parsers()):
        parser = parsers.response()
        head = parser.request(b"POST", b"/x?y", [(b"host", b"a"), framing])
        written.append(head + parser.data(b"abc") + parser.data(b"de") + parser.end())
    assert written[0] == written[1]


_WITHOUT_ZTTP = """
import logging, sys
logging.basicConfig()
sys.modules["zttp"] = None
import pilothouse.apiserver.outbound.connection, pilothouse.apiserver.serving.http1
from pilothouse.apiserver.http1.parser import chosen_parsers
print(chosen_parsers().name, chosen_parsers().name)
"""


def test_without_zttp_the_fallback_is_used_and_one_line_says_so() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _WITHOUT_ZTTP], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    assert ran.stdout == "python python\n"
    assert ran.stderr.count("zttp cannot be imported") == 1
