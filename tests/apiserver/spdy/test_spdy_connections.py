"""Two ends of a SPDY connection over a real socket."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from patience import PATIENCE

from pilothouse.apiserver.spdy.connection import MAX_STREAMS, SpdyConnection, StreamRefused
from pilothouse.apiserver.spdy.stream import SpdyStream


@asynccontextmanager
async def two_ends() -> AsyncIterator[tuple[SpdyConnection, asyncio.Queue[SpdyStream]]]:
    """A client, and the streams that its server has taken."""
    taken: asyncio.Queue[SpdyStream] = asyncio.Queue()

    def take(stream: SpdyStream) -> None:
        if stream.header("streamtype") == "unwanted":
            raise StreamRefused
        taken.put_nowait(stream)

    here, there = socket.socketpair()
    client = SpdyConnection(*await asyncio.open_connection(sock=here), serves=False)
    server = SpdyConnection(*await asyncio.open_connection(sock=there), serves=True, accept=take)
    tasks = [asyncio.create_task(client.run()), asyncio.create_task(server.run())]
    try:
        async with asyncio.timeout(PATIENCE):
            yield client, taken
    finally:
        client.close()
        server.close()
        await asyncio.gather(*tasks)


def named(name: str) -> dict[str, tuple[str, ...]]:
    return {"streamtype": (name,)}


async def read_all(stream: SpdyStream) -> bytes:
    found = bytearray()
    while data := await stream.read():
        found += data
    return bytes(found)


async def test_each_direction_of_a_stream_ends_on_its_own() -> None:
    async with two_ends() as (client, taken):
        stream = await client.create_stream(named("data"))
        other = await taken.get()
        assert (other.id, other.header("streamtype")) == (1, "data")
        await stream.write(b"question")
        await stream.close()
        assert await read_all(other) == b"question"
        await other.write(b"answer")
        await other.close()
        assert await read_all(stream) == b"answer"
        with pytest.raises(BrokenPipeError):
            await stream.write(b"more")


async def test_streams_do_not_mix() -> None:
    async with two_ends() as (client, taken):
        streams = [await client.create_stream(named(str(number))) for number in range(5)]
        for number, stream in enumerate(streams):
            await stream.write(bytes((number,)) * 1000)
            await stream.close()
        for number in range(5):
            other = await taken.get()
            assert (other.header("streamtype"), await read_all(other)) == (str(number), bytes((number,)) * 1000)


async def test_a_stream_that_nobody_wants_is_refused_and_the_others_go_on() -> None:
    async with two_ends() as (client, taken):
        with pytest.raises(ConnectionResetError):
            await client.create_stream(named("unwanted"))
        await client.create_stream(named("data"))
        assert (await taken.get()).id == 3


async def test_a_reset_ends_both_directions() -> None:
    async with two_ends() as (client, taken):
        stream = await client.create_stream(named("data"))
        await stream.write(b"before")
        await stream.reset()
        other = await taken.get()
        assert await read_all(other) == b"before"
        with pytest.raises(BrokenPipeError):
            await other.write(b"x")


async def test_who_does_not_read_holds_up_who_writes() -> None:
    async with two_ends() as (client, taken):
        stream = await client.create_stream(named("data"))
        written = 0

        async def write() -> None:
            nonlocal written
            for _ in range(256):
                await stream.write(b"x" * 65536)
                written += 65536
            await stream.close()

        writing = asyncio.create_task(write())
        other = await taken.get()
        await asyncio.wait((writing,), timeout=0.1)
        assert written < 8 * 1024 * 1024
        assert len(await read_all(other)) == 256 * 65536
        await writing


async def test_no_more_streams_are_open_at_a_time_than_there_may_be() -> None:
    async with two_ends() as (client, _):
        for _ in range(MAX_STREAMS):
            await client.create_stream(named("data"))
        with pytest.raises(ConnectionResetError):
            await client.create_stream(named("data"))


async def test_streams_end_when_the_other_end_closes_after_what_it_has_written() -> None:
    async with two_ends() as (client, taken):
        stream = await client.create_stream(named("data"))
        other = await taken.get()
        await other.write(b"x" * 300_000)
        other._connection.close()
        assert len(await read_all(stream)) == 300_000
        with pytest.raises(ConnectionResetError):
            await client.create_stream(named("late"))


async def test_a_stream_that_was_taken_can_be_read_though_the_other_end_has_gone_at_once() -> None:
    async with two_ends() as (client, taken):
        creating = asyncio.create_task(client.create_stream(named("data")))
        other = await taken.get()
        await other.write(b"all there is")
        other._connection.close()
        assert await read_all(await creating) == b"all there is"


@asynccontextmanager
async def raw_client(**running: float) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """The client's side of a connection that a server's end reads."""
    here, there = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=here)
    server = SpdyConnection(*await asyncio.open_connection(sock=there), serves=True)
    task = asyncio.create_task(server.run(**running))
    try:
        async with asyncio.timeout(PATIENCE):
            yield reader, writer
    finally:
        writer.close()
        await task


async def test_an_idle_connection_is_closed() -> None:
    async with raw_client(idle_seconds=0.02) as (reader, _):
        assert await reader.read() == bytes.fromhex("80030007 00000008 00000000 00000000")


async def test_pings_are_answered_but_not_answers_to_pings() -> None:
    async with raw_client() as (reader, writer):
        own, theirs = bytes.fromhex("80030006 00000004 00000003"), bytes.fromhex("80030006 00000004 00000002")
        writer.write(theirs + own)
        assert await reader.readexactly(12) == own


async def test_who_breaks_the_protocol_is_left() -> None:
    async with raw_client() as (reader, writer):
        writer.write(bytes.fromhex("80030001 00ffffff"))
        assert await reader.read() == bytes.fromhex("80030007 00000008 00000000 00000001")


async def test_pings_are_sent_as_long_as_the_connection_is_open() -> None:
    here, there = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=here)
    client = SpdyConnection(*await asyncio.open_connection(sock=there), serves=False)
    pinging = asyncio.create_task(client.ping_every(0.01))
    async with asyncio.timeout(PATIENCE):
        assert (await reader.readexactly(24))[8:] == bytes.fromhex("00000001 80030006 00000004 00000003")
        client.close()
        await pinging
    writer.close()
