"""Where one request ends and the next begins: there is one opinion about it, and no byte is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from serving_harness import Http1Client, client_context, eventually, secure_options, serving
from transport_double import Pipe

from pilothouse.apiserver.http import Request, Response
from pilothouse.apiserver.serving.http1 import Http1Connection
from pilothouse.apiserver.serving.limits import Limits
from pilothouse.apiserver.serving.state import ServingState
from pilothouse.controlplane.certificates.paths import CertificatePaths

pytestmark = pytest.mark.usefixtures("each_parser")

LENGTH = b"Content-Length: 7\r\n\r\n\r\n\r\nabc"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n4\r\n\r\n\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
TRAILERS = b"Transfer-Encoding: chunked\r\n\r\n4\r\n\r\n\r\n\r\n3;x=y\r\nabc\r\n0\r\nX: y\r\n\r\n"


async def echo(request: Request) -> Response:
    body = await request.read_body(200_000)
    return Response(200, f"{request.method} {request.path} {request.whole_header(b'x')} ".encode() + body)


@pytest.fixture
async def client(pki: CertificatePaths) -> AsyncIterator[Http1Client]:
    async with serving(echo, secure_options(pki)) as server:
        connected = await Http1Client.connect(server.port, client_context(pki, alpn="http/1.1"))
        yield connected
        connected.close()


@pytest.mark.parametrize("framing", [LENGTH, CHUNKED, TRAILERS], ids=["length", "chunked", "trailers"])
@pytest.mark.parametrize("begun", [1, 2, 40, 20_000])
async def test_a_long_head_may_begin_in_the_segment_of_the_request_before_it(
    client: Http1Client, framing: bytes, begun: int
) -> None:
    first = b"POST /first HTTP/1.1\r\nHost: a\r\n" + framing
    second = b"POST /second HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nX: " + b"x" * 90_000 + b"\r\n\r\nhi"
    client.send(first + second[:begun])
    assert (await client.answer()).body == b"POST /first  \r\n\r\nabc"
    client.send(second[begun:])
    assert (await client.answer()).body == b"POST /second " + b"x" * 90_000 + b" hi"


@given(st.lists(st.sampled_from([LENGTH, CHUNKED, TRAILERS, b"\r\n"]), max_size=4), st.integers(1, 40))
@settings(max_examples=80, deadline=None)
def test_requests_are_the_same_however_they_are_cut_into_segments(framings: list[bytes], piece: int) -> None:
    long = b"POST /long HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 20_000 + b"\r\nContent-Length: 0\r\n\r\n"
    sent = [b"POST /%d HTTP/1.1\r\nHost: a\r\n" % number + framing for number, framing in enumerate(framings)]
    bodies = [b"" if framing == b"\r\n" else b"\r\n\r\nabc" for framing in framings]
    expected = [b"POST /%d  %b" % (number, body) for number, body in enumerate(bodies)]
    assert asyncio.run(answers(b"".join(sent) + long, piece)) == [*expected, b"POST /long " + b"x" * 20_000 + b" "]


async def answers(data: bytes, piece: int) -> list[bytes]:
    """The bodies that a connection answers with when the data comes in pieces."""
    transport = Pipe()
    connection = Http1Connection(ServingState(echo, Limits()), asyncio.get_running_loop())
    connection.connection_made(transport)
    for at in range(0, 1000, piece):
        connection.data_received(data[at : min(at + piece, 1000)])
        await asyncio.sleep(0)
    connection.data_received(data[1000:])
    await eventually(lambda: transport.written.endswith(b"x "))
    connection.connection_lost(None)
    return [answer.partition(b"\r\n\r\n")[2] for answer in transport.written.split(b"HTTP/1.1 200 OK\r\n")[1:]]


@pytest.mark.parametrize("long", ["", f"X: {'x' * 20_000}\r\n"], ids=["short", "long"])
@pytest.mark.parametrize(
    "codings",
    [
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: gzip\r\n",
        "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding: chunked, chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding:\r\n",
    ],
)
async def test_codings_other_than_chunked_are_refused_as_net_http_does(
    client: Http1Client, codings: str, long: str
) -> None:
    client.ask("/", "POST", codings + long)
    client.send(b"3\r\nabc\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n")
    answer = await client.answer()
    assert (answer.status, answer.body) == (501, b"Unsupported transfer encoding")
    assert answer.headers[b"connection"] == b"close"
    assert await client.end() == b""


@pytest.mark.parametrize("coding", ["chunked", "CHUNKED", "\tchunked "])
async def test_chunked_is_read_in_any_case(client: Http1Client, coding: str) -> None:
    client.ask("/", "POST", f"Transfer-Encoding: {coding}\r\n")
    client.send(b"3\r\nabc\r\n0\r\n\r\n")
    assert (await client.answer()).body == b"POST /  abc"


@pytest.mark.parametrize("long", ["", f"Y: {'x' * 20_000}\r\n"], ids=["short", "long"])
async def test_chunks_win_over_a_length_and_the_connection_ends(client: Http1Client, long: str) -> None:
    client.ask("/", "POST", f"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n{long}")
    client.send(b"3\r\nabc\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n")
    answer = await client.answer()
    assert (answer.body, answer.headers[b"connection"]) == (b"POST /  abc", b"close")
    assert await client.end() == b""


@pytest.mark.parametrize(
    "framing",
    [
        "Content-Length: 4\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: +4\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: 4\r\nContent-Length: 5\r\n",
        "Content-Length: 4, 4\r\n",
        "Content-Length: 0x4\r\n",
        "Content-Length: \r\n",
        "Transfer-Encoding : chunked\r\n",
    ],
)
async def test_two_opinions_about_the_length_are_refused(client: Http1Client, framing: str) -> None:
    client.ask("/", "POST", framing)
    client.send(b"3\r\nabc\r\n0\r\n\r\n")
    assert (await client.answer()).status == 400
    assert await client.end() == b""


async def test_http_1_0_knows_no_chunks(client: Http1Client) -> None:
    client.send(b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
    assert (await client.answer()).status == 400


async def test_a_chunked_body_that_is_mostly_chunk_extensions_is_given_up(client: Http1Client) -> None:
    client.ask("/", "POST", "Transfer-Encoding: chunked\r\n")
    client.send((b"1;" + b"x" * 8000 + b"\r\na\r\n") * 4)
    assert await client.end() == b""


async def test_chunks_of_one_byte_are_a_body_like_any_other(client: Http1Client) -> None:
    client.ask("/", "POST", "Transfer-Encoding: chunked\r\n")
    client.send(b"1\r\na\r\n" * 50_000 + b"0\r\n\r\n")
    assert (await client.answer()).body == b"POST /  " + b"a" * 50_000
    client.ask("/next")
    assert (await client.answer()).body == b"GET /next  "
