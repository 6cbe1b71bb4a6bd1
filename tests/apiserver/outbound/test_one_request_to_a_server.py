"""One request and its whole answer, over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import h2.events
import pytest
from http2_peer import Conversation, Peers
from patience import PATIENCE
from tls_backends import SERVER_NAME

from pilothouse.apiserver.outbound.connection import BackendConnection
from pilothouse.apiserver.outbound.failures import BackendFailed
from pilothouse.apiserver.outbound.request import AnswerTooLarge, OutboundRequest, ask
from pilothouse.apiserver.outbound.targets import Target, target_of

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Kind: a\r\n\r\nhello"


@asynccontextmanager
async def saying(answer: bytes) -> AsyncIterator[tuple[Target, list[bytes]]]:
    """A plain server, and the heads that it has heard."""
    heard: list[bytes] = []
    closed = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer)
        writer.write_eof()
        await reader.read()
        writer.close()
        closed.set()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield Target("127.0.0.1", server.sockets[0].getsockname()[1], "/a", "b=c"), heard
        async with asyncio.timeout(PATIENCE):
            await closed.wait()


async def test_a_request_names_its_host_and_its_answer_comes_whole() -> None:
    async with saying(OK) as (target, heard):
        answer = await ask(OutboundRequest("GET", target, [(b"x-a", b"b")]), limit=5)
    assert (answer.status, answer.body, answer.header(b"x-kind"), answer.header(b"x")) == (200, b"hello", "a", "")
    assert heard == [f"GET /a?b=c HTTP/1.1\r\nhost: {target.authority}\r\nx-a: b\r\n\r\n".encode()]


@pytest.mark.parametrize(("method", "body", "length"), [("POST", b"", 0), ("DELETE", b"xyz", 3), ("GET", b"x", 1)])
async def test_a_body_is_sent_with_its_length(method: str, body: bytes, length: int) -> None:
    async with saying(OK) as (target, heard):
        await ask(OutboundRequest(method, target, [(b"host", b"other")], body), limit=5)
    assert heard == [f"{method} /a?b=c HTTP/1.1\r\nhost: other\r\ncontent-length: {length}\r\n\r\n".encode()]


async def test_an_answer_that_is_too_large_is_not_read_to_its_end() -> None:
    async with saying(OK) as (target, _):
        with pytest.raises(AnswerTooLarge, match=r"^the answer is larger than 4 bytes$"):
            await ask(OutboundRequest("GET", target), limit=4)


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello"])
async def test_an_answer_that_breaks_off_is_none(answer: bytes) -> None:
    async with saying(answer) as (target, _):
        with pytest.raises(BackendFailed):
            await ask(OutboundRequest("GET", target), limit=100)


async def test_a_server_that_offers_http2_is_asked_so_on_a_connection_that_ends(tmp_path: Path) -> None:
    def behave(conversation: Conversation, event: Any) -> None:
        if isinstance(event, h2.events.RequestReceived):
            conversation.respond(event.stream_id, b"hello")

    async with Peers.make(tmp_path).running(behave) as (peer, _, target):
        asked = OutboundRequest("GET", replace(target, server_name=SERVER_NAME))
        assert (await ask(asked, limit=5)).body == b"hello"
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*filter(None, peer.tasks))


def test_a_url_becomes_a_target() -> None:
    target = target_of("https://[::1]:8443/a b/%41?x=y z", tls=None)
    assert (target.host, target.port, target.resource) == ("::1", 8443, "/a%20b/%41?x=y%20z")
    assert target_of("https://Example.com", tls=None).resource == "/"
    with pytest.raises(ValueError):
        target_of("nowhere", tls=None)


def test_event_loops_in_two_threads_have_no_receive_buffer_in_common() -> None:
    """TLS fills it without holding the interpreter."""

    async def buffer() -> memoryview:
        return BackendConnection(asyncio.get_running_loop()).get_buffer(-1)

    with ThreadPoolExecutor(1) as other:
        assert other.submit(asyncio.run, buffer()).result() is not asyncio.run(buffer())
    assert asyncio.run(buffer()) is asyncio.run(buffer()), "connections of one thread share it"
