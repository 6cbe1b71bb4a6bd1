"""No header that is written, in answers or in requests to other servers, becomes two."""

from __future__ import annotations

import asyncio

import pytest
from serving_harness import Http1Client, Http2Client, client_context, secure_options, serving

from pilothouse.apiserver.head_fields import InvalidHead, check_fields, check_request
from pilothouse.apiserver.http import Request, Response
from pilothouse.apiserver.http2.hpack import encode_request
from pilothouse.apiserver.outbound.connection import BackendConnection
from pilothouse.apiserver.outbound.failures import BackendFailed
from pilothouse.apiserver.outbound.targets import Target
from pilothouse.apiserver.proxy.upgrades import forward_upgrade
from pilothouse.controlplane.certificates.paths import CertificatePaths
from pilothouse.machinery.status_error import StatusError

BAD_FIELDS: list[tuple[bytes, bytes]] = [
    (b"x-user", b"bob\r\nx-group: masters"),
    (b"x-user", b"bob\nx-group: masters"),
    (b"x-user", b"bob\rx"),
    (b"x-user", b"bob\0"),
    (b"x-user", b"\x7f"),
    (b"x-user: bob\r\nx-group", b"masters"),
    (b"x user", b"bob"),
    (b"", b"bob"),
]
fields = pytest.mark.parametrize("field", BAD_FIELDS)


def test_what_http_allows_is_let_through_again_and_again() -> None:
    headers = [(b"X-Token_1.~", b""), (b"warning", "299 - \tbé".encode()), (b"x-b", b"\x80\xff")]
    for _ in range(2):
        check_fields(headers)
        check_request(b"PATCH", b"/a?b=%20\xc3", headers)


def test_the_words_are_those_of_net_http() -> None:
    with pytest.raises(InvalidHead, match=r'^net/http: invalid header field value for "X-Remote-User"$'):
        check_fields([(b"accept", b"*/*"), (b"x-remote-user", b"a\nb")])
    with pytest.raises(InvalidHead, match=r'^net/http: invalid header field name "x y"$'):
        check_fields([(b"accept", b"*/*"), (b"x y", b"a")])


@fields
@pytest.mark.parametrize("status", [200, 204, 101])
async def test_an_answer_with_a_bad_field_is_an_error_and_nothing_of_it_is_sent(
    pki: CertificatePaths, field: tuple[bytes, bytes], status: int
) -> None:
    async def upgrade(transport: asyncio.Transport, early: bytes) -> None:
        raise AssertionError

    async def handler(request: Request) -> Response:
        return Response(status, b"", [(b"x-good", b"1"), field], upgrade=upgrade if status == 101 else None)

    async with serving(handler, secure_options(pki)) as server:
        first = await Http1Client.connect(server.port, client_context(pki, alpn="http/1.1"))
        first.ask("/", headers="Connection: Upgrade\r\nUpgrade: x\r\n" if status == 101 else "")
        answer = await first.answer()
        assert (answer.status, b"x-group" in answer.headers, b"x-good" in answer.headers) == (500, False, False)
        if status != 101:
            second = await Http2Client.connect(server.port, client_context(pki, alpn="h2"))
            assert (await second.get("/")).status == 500


@fields
def test_no_request_to_another_server_is_written_with_a_bad_field(field: tuple[bytes, bytes]) -> None:
    with pytest.raises(InvalidHead):
        encode_request(b"GET", b"/", b"host", [field])
    loop = asyncio.new_event_loop()
    with pytest.raises(BackendFailed, match=r"^net/http: invalid header field"):
        BackendConnection(loop).send_head("GET", "/", [(b"host", b"h"), field])
    loop.close()


@pytest.mark.parametrize("target", ["/a b", "/a HTTP/1.1\r\nX-Evil: 1\r\n\r\n", "/a\tb", ""])
def test_no_request_to_another_server_is_written_with_a_bad_target(target: str) -> None:
    with pytest.raises(InvalidHead):
        encode_request(b"GET", target.encode(), b"host", [])
    with pytest.raises(InvalidHead):
        check_request(target.encode() or b"G T", b"/", [])


async def test_an_upgrade_with_a_bad_head_never_reaches_the_other_server() -> None:
    heard: list[bytes] = []

    async def backend(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read(1000))
        writer.close()

    server = await asyncio.start_server(backend, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    split = Target("127.0.0.1", port, "/exec HTTP/1.1\r\nX-Evil: 1\r\n\r\nGET /admin")
    for target, headers in (*((Target("127.0.0.1", port, "/exec"), [field]) for field in BAD_FIELDS), (split, [])):
        with pytest.raises(StatusError, match=r"^error sending request: net/http: "):
            await forward_upgrade(Request("GET", "/", "", [], _no_body), target, headers)
    server.close()
    assert heard == []


async def _no_body(limit: int) -> bytes:
    return b""
