"""Requests to other servers over HTTP/2, with a peer that is not of our making."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from typing import Any

import h2.events
import pytest
from http2_peer import Conversation, Peers
from hypothesis import given, settings
from hypothesis import strategies as st
from patience import PATIENCE
from serving_harness import transport_of

from pilothouse.aggregator.proxy.forwarding import Forwarding
from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.http import Headers, Request
from pilothouse.apiserver.outbound import http2_connection
from pilothouse.apiserver.outbound.exchange import BackendExchange
from pilothouse.apiserver.outbound.failures import BackendFailed
from pilothouse.apiserver.outbound.http2_stream import STREAM_WINDOW, BackendStream
from pilothouse.apiserver.outbound.pool import ConnectionPool
from pilothouse.apiserver.outbound.targets import Target

HEADERS: Headers = [(b"host", b"web.default.svc"), (b"x-remote-user", b"amy")]


@pytest.fixture(scope="module")
def peers(tmp_path_factory: pytest.TempPathFactory) -> Peers:
    return Peers.make(tmp_path_factory.mktemp("pki"))


async def asked(pool: ConnectionPool, target: Target, body: bytes = b"", method: str = "POST") -> BackendExchange:
    exchange = await pool.take(target)
    exchange.send_head(method, "/things", HEADERS)
    exchange.send_end(body)
    return exchange


async def read(exchange: BackendExchange) -> bytes:
    async with asyncio.timeout(PATIENCE):
        assert (await exchange.head()).status == 200
        return b"".join([chunk async for chunk in exchange.body()])


def answer_all(conversation: Conversation, event: Any) -> None:
    if isinstance(event, h2.events.StreamEnded):
        conversation.respond(event.stream_id, b"x")


class Echo:
    """Answers with what it was sent, once it has all of it."""

    def __init__(self) -> None:
        self.bodies: dict[int, list[bytes]] = {}

    def __call__(self, conversation: Conversation, event: Any) -> None:
        if isinstance(event, h2.events.DataReceived):
            self.bodies.setdefault(event.stream_id, []).append(event.data)
            conversation.wire.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.StreamEnded):
            conversation.respond(event.stream_id, b"".join(self.bodies.get(event.stream_id, [])))


@given(
    st.lists(st.sampled_from([0, 1, 16_384, 65_535, 65_536, 200_000, 2_000_000]), min_size=1, max_size=4),
    st.sampled_from([1, 1_000, 65_535, 1 << 20]),
    st.sampled_from([16_384, 100_000]),
)
@settings(max_examples=15, deadline=None)
def test_bodies_of_any_size_go_both_ways_within_any_window(
    peers: Peers, sizes: list[int], window: int, frame_size: int
) -> None:
    sizes = [min(size, window * 200) for size in sizes]  # a window of one byte is slow

    async def go() -> None:
        limits = {"INITIAL_WINDOW_SIZE": window, "MAX_FRAME_SIZE": frame_size}
        async with peers.running(Echo(), **limits) as (_, pool, target):
            await read(await asked(pool, target))  # h2 wants its windows kept before it has told anyone
            bodies = [bytes((number,)) * size for number, size in enumerate(sizes)]
            exchanges = [await asked(pool, target, body) for body in bodies]
            assert await asyncio.gather(*map(read, exchanges)) == bodies

    asyncio.run(go())


async def test_a_body_that_comes_in_pieces_is_sent_as_it_comes(peers: Peers) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for number in range(30):
            yield bytes((number,)) * 10_000

    async with peers.running(Echo()) as (_, pool, target):
        exchange = await pool.take(target)
        exchange.send_head("PUT", "/things", HEADERS)
        await exchange.send_stream(pieces())
        assert await read(exchange) == b"".join([piece async for piece in pieces()])


async def test_requests_share_a_connection_as_far_as_the_server_lets_them(peers: Peers) -> None:
    async with peers.running(answer_all, MAX_CONCURRENT_STREAMS=2) as (peer, pool, target):
        first = await asked(pool, target)
        await read(first)
        pool.give_back(target, first)
        exchanges = [await asked(pool, target) for _ in range(5)]
        assert [await read(exchange) for exchange in exchanges] == [b"x"] * 5
        assert len(peer.conversations) == 3
        for exchange in exchanges:
            pool.give_back(target, exchange)
        await read(await asked(pool, target))
        assert len(peer.conversations) == 3


async def test_the_kernel_looks_after_connections(peers: Peers) -> None:
    async with peers.running(answer_all) as (_, pool, target):
        exchange = await asked(pool, target)
        assert isinstance(exchange, BackendStream)
        connection = exchange.connection.transport.get_extra_info("socket")
        assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


async def test_many_requests_at_once_make_one_connection(peers: Peers) -> None:
    async with peers.running(answer_all) as (peer, pool, target):
        first = await asked(pool, target)
        await read(first)
        pool.give_back(target, first)
        peer.conversations[0].writer.transport.abort()
        with pytest.raises(BackendFailed):
            await read(await asked(pool, target))
        exchanges = await asyncio.gather(*(asked(pool, target) for _ in range(20)))
        assert await asyncio.gather(*map(read, exchanges)) == [b"x"] * 20
        assert len(peer.conversations) == 2


async def test_a_server_that_takes_nothing_is_an_error_and_not_a_loop(peers: Peers) -> None:
    async with peers.running(answer_all) as (peer, pool, target):
        assert await _whole(pool, target) == b"x"
        peer.refusing = True
        peer.conversations[0].writer.transport.abort()
        assert isinstance(await _whole(pool, target), BackendFailed)
        asking = [asyncio.create_task(_whole(pool, target)) for _ in range(5)]
        async with asyncio.timeout(PATIENCE):
            assert all(isinstance(failed, BackendFailed) for failed in await asyncio.gather(*asking))
        assert 2 <= len(peer.conversations) <= 6


async def _whole(pool: ConnectionPool, target: Target) -> bytes | BackendFailed:
    try:
        return await read(await asked(pool, target))
    except BackendFailed as error:
        return error


async def test_an_answer_that_nobody_reads_holds_only_itself_back(peers: Peers) -> None:
    def behave(conversation: Conversation, event: Any) -> None:
        if isinstance(event, h2.events.StreamEnded):
            conversation.respond(event.stream_id, bytes(3 * STREAM_WINDOW))

    async with peers.running(behave) as (peer, pool, target):
        slow = await asked(pool, target)
        await slow.head()
        assert len(await read(await asked(pool, target))) == 3 * STREAM_WINDOW
        assert len(peer.conversations[0].unsent[1]) == 2 * STREAM_WINDOW
        assert len(await read(slow)) == 3 * STREAM_WINDOW


async def test_a_server_that_leaves_answers_what_it_took_and_has_not_looked_at_the_rest(peers: Peers) -> None:
    def behave(conversation: Conversation, event: Any) -> None:
        if isinstance(event, h2.events.StreamEnded) and event.stream_id == 3:
            conversation.wire.close_connection(last_stream_id=1)
            conversation.flush()
            conversation.writer.write(b"\x00\x00\x01\x01\x05\x00\x00\x00\x01\x88")  # :status 200, and the end

    async with peers.running(behave) as (peer, pool, target):
        taken, left = await asked(pool, target), await asked(pool, target)
        with pytest.raises(BackendFailed) as failed:
            await left.head()
        assert failed.value.unprocessed
        assert await read(taken) == b""
        await asked(pool, target)
        assert len(peer.conversations) == 2


async def test_a_refused_stream_was_not_looked_at_and_a_reset_one_may_have_been(peers: Peers) -> None:
    codes = iter([7, 2])

    def behave(conversation: Conversation, event: Any) -> None:
        if isinstance(event, h2.events.StreamEnded):
            code = next(codes, None)
            if code is None:
                conversation.respond(event.stream_id)
            else:
                conversation.wire.reset_stream(event.stream_id, code)

    async with peers.running(behave) as (peer, pool, target):
        for unprocessed, why in ((True, "REFUSED_STREAM"), (False, "INTERNAL_ERROR")):
            with pytest.raises(BackendFailed, match=f"stream error: stream ID .; {why}; received from peer") as failed:
                await (await asked(pool, target)).head()
            assert (failed.value.unprocessed, failed.value.unanswered) == (unprocessed, True)
        assert await read(await asked(pool, target)) == b""
        assert len(peer.conversations) == 1


@pytest.mark.parametrize("length", ["1", "3"])
async def test_an_answer_that_is_not_as_long_as_it_says_is_none(peers: Peers, length: str) -> None:
    def behave(conversation: Conversation, event: Any) -> None:
        if isinstance(event, h2.events.StreamEnded):
            conversation.respond(event.stream_id, b"xy", [(":status", "200"), ("content-length", length)])

    async with peers.running(behave) as (_, pool, target):
        with pytest.raises(BackendFailed, match="not as long as was declared"):
            await read(await asked(pool, target))


async def test_whoever_wants_no_more_of_an_answer_says_so(peers: Peers) -> None:
    def behave(conversation: Conversation, event: Any) -> None:
        if isinstance(event, h2.events.StreamEnded):
            conversation.wire.send_headers(event.stream_id, [(":status", "200")])

    async with peers.running(behave) as (peer, pool, target):
        exchange = await asked(pool, target)
        await exchange.head()
        pool.give_back(target, exchange)
        assert (await peer.until(h2.events.StreamReset)).error_code == 8


async def test_an_answer_that_takes_too_long_is_broken_off(peers: Peers) -> None:
    async with peers.running(lambda conversation, event: None) as (peer, pool, target):
        exchange = await asked(pool, target)
        exchange.fail_at(asyncio.get_running_loop().time())
        with pytest.raises(BackendFailed, match="context deadline exceeded"):
            await exchange.head()
        await peer.until(h2.events.StreamReset)


async def test_a_connection_that_breaks_fails_every_request_on_it(peers: Peers) -> None:
    async with peers.running(lambda conversation, event: None) as (peer, pool, target):
        exchanges = [await asked(pool, target) for _ in range(3)]
        await peer.until(h2.events.StreamEnded)
        peer.conversations[0].writer.transport.abort()
        for exchange in exchanges:
            with pytest.raises(BackendFailed) as failed:
                await exchange.head()
            assert failed.value.unanswered
            assert not failed.value.unprocessed


async def test_a_server_that_gives_no_sign_of_life_is_given_up(peers: Peers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http2_connection, "_QUIET", 0.01)
    monkeypatch.setattr(http2_connection, "_SIGN_OF_LIFE", 0.05)
    async with peers.running(lambda conversation, event: None) as (peer, pool, target):
        exchange = await asked(pool, target)
        await peer.until(h2.events.StreamEnded)
        await peer.until(h2.events.PingReceived)  # which h2 answers
        transport_of(peer.conversations[0].writer).pause_reading()
        with pytest.raises(BackendFailed, match="http2: client connection lost"):
            async with asyncio.timeout(PATIENCE):
                await exchange.head()


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (b"\x00\x00\x04\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00", "a window grows by nothing"),
        (b"\x00\x00\x00\x00\x01\x00\x00\x00\x63", "a stream that was not opened"),
        (b"\x00\x00\x04\x05\x04\x00\x00\x00\x01\x00\x00\x00\x02", "the server pushes"),
        (b"\x00\x00\x01\x01\x04\x00\x00\x00\x01\xff", "cut off"),
        (b"\xff\x00\x00\x00\x00\x00\x00\x00\x01", "a frame is too large"),
        (b"\x00\x00\x01\x01\x05\x00\x00\x00\x01\x82", "does not begin with its status"),
        (b"\x00\x00\x01\x00\x01\x00\x00\x00\x01x", "DATA before HEADERS"),
        (b"\x00\x00\x04\x01\x25\x00\x00\x00\x01\0\0\0\0", "a HEADERS frame is too short"),
        (b"\x00\x00\x0c\x04\x00\x00\x00\x00\x00" + b"\0\4\0\0\0\1" * 2, "too many settings, or one twice"),
        (b"\x00\x00\x04\x08\x00\x00\x00\x00\x00\x00\x00\x00\x01" * 2000, "too many frames that say nothing"),
    ],
)
async def test_a_server_that_breaks_the_protocol_is_an_error(peers: Peers, wrong: bytes, why: str) -> None:
    def behave(conversation: Conversation, event: Any) -> None:
        if isinstance(event, h2.events.StreamEnded):
            conversation.flush()
            conversation.writer.write(wrong)

    async with peers.running(behave) as (_, pool, target):
        exchange = await asked(pool, target)
        with pytest.raises(BackendFailed, match=why):
            await exchange.head()


async def test_a_header_that_would_be_two_is_not_sent(peers: Peers) -> None:
    async with peers.running(answer_all) as (_, pool, target):
        exchange = await pool.take(target)
        with pytest.raises(BackendFailed, match="invalid header field value"):
            exchange.send_head("GET", "/", [*HEADERS, (b"x-remote-group", b"a\r\nx-remote-group: system:masters")])
        exchange.close()


async def test_a_request_that_was_not_looked_at_is_made_again_whatever_its_method(peers: Peers) -> None:
    echo = Echo()

    def behave(conversation: Conversation, event: Any) -> None:
        if conversation is not peer.conversations[0]:
            echo(conversation, event)
        elif isinstance(event, h2.events.StreamEnded):
            conversation.wire.reset_stream(event.stream_id, 7)

    async with peers.running(behave) as (peer, pool, target):
        answer = await Forwarding(_post(b"{}"), target, pool, None).run()
        whole = answer.body if isinstance(answer.body, bytes) else b"".join([chunk async for chunk in answer.body])
        assert (answer.status, whole) == (200, b"{}")
        assert len(peer.conversations) == 2


def _post(body: bytes) -> Request:
    async def read_body(limit: int) -> bytes:
        return body

    return Request("POST", "/things", "", [(b"content-length", b"%d" % len(body))], read_body, user=User("amy"))
