"""WebSockets on which both sides speak, and the channels on them."""

from __future__ import annotations

import asyncio
import socket
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from patience import PATIENCE

from pilothouse.apiserver.serving.upgrade import RawConnection
from pilothouse.apiserver.serving.websocket import unmasked
from pilothouse.apiserver.serving.websocket_channels import V4_BASE64, V5, Channels, DuplexWebSocket, Received

TEXT, BINARY, CLOSE, PING = 0x1, 0x2, 0x8, 0x9
MASK = b"\x01\x02\x03\x04"


def sent(opcode: int, payload: bytes, *, final: bool = True, mask: bytes = MASK) -> bytes:
    """A frame as clients send it."""
    size = len(payload)
    if size < 126:
        length = bytes((size,))
    else:
        length = b"\x7e" + size.to_bytes(2, "big") if size < 1 << 16 else b"\x7f" + size.to_bytes(8, "big")
    masked = bytes((length[0] | 0x80,)) + length[1:]
    return bytes(((0x80 if final else 0) | opcode,)) + masked + mask + unmasked(payload, mask)


@asynccontextmanager
async def connected() -> AsyncIterator[tuple[DuplexWebSocket, RawConnection]]:
    """The server's end, and the client's connection."""
    here, there = socket.socketpair()
    server = RawConnection(*await asyncio.open_connection(sock=here))
    client = RawConnection(*await asyncio.open_connection(sock=there))
    try:
        async with asyncio.timeout(PATIENCE):
            yield DuplexWebSocket(server), client
    finally:
        client.writer.close()
        server.writer.close()


async def received(protocol: str, *frames: bytes) -> list[Received]:
    """What the channels make of the frames, up to the end."""
    async with connected() as (web, client):
        client.writer.write(b"".join(frames))
        client.writer.write_eof()
        channels, found = Channels(web, protocol), []
        while (each := await channels.receive()) is not None:
            found.append(each)
        return found


def test_unmasking_goes_on_where_it_stopped() -> None:
    masked = unmasked(b"hello, world", MASK)
    assert unmasked(masked[:5], MASK) + unmasked(masked[5:], MASK, 5) == b"hello, world"


async def test_messages_belong_to_the_channel_that_they_begin_with() -> None:
    assert await received(V5, sent(BINARY, b"\0in"), sent(BINARY, b"\4size"), sent(BINARY, b"\xff\0")) == [
        Received(0, b"in"),
        Received(4, b"size"),
        Received(0, None),
    ]


async def test_a_message_may_come_in_parts_with_pings_between_them() -> None:
    parts = (sent(BINARY, b"\0a", final=False), sent(PING, b"?"), sent(0, b"b", final=False), sent(0, b"c"))
    assert await received(V5, *parts) == [Received(0, b"a"), Received(0, b"b"), Received(0, b"c")]


async def test_a_long_message_comes_in_pieces() -> None:
    pieces = await received(V5, sent(BINARY, b"\0" + b"x" * 200_000))
    assert {each.channel for each in pieces} == {0}
    assert [len(each.data or b"") for each in pieces] == [65535, 65536, 65536, 3393]


async def test_base64_is_decoded_across_pieces() -> None:
    pieces = await received(V4_BASE64, sent(TEXT, b"0" + b64encode(b"x" * 90_000)))
    assert b"".join(each.data or b"" for each in pieces) == b"x" * 90_000


async def test_pings_are_answered_and_closing_ends_it() -> None:
    async with connected() as (web, client):
        client.writer.write(sent(PING, b"there?") + sent(CLOSE, b"\x03\xe8"))
        assert await web.receive() is None
        assert await client.reader.readexactly(8) == b"\x8a\x06there?"


async def test_what_is_sent_is_one_frame_for_each_message() -> None:
    async with connected() as (web, client):
        await Channels(web, V5).send(1, b"out")
        await Channels(web, V4_BASE64).send(1, b"out")
        web.close()
        assert await client.reader.read() == b"\x82\x04\x01out" + b"\x81\x051b3V0" + b"\x88\x02\x03\xe8"


@pytest.mark.parametrize(
    "hostile",
    [
        b"\x82\x02\x00x",  # not masked
        sent(BINARY | 0x40, b"\0x"),  # a reserved bit
        sent(PING, b"x" * 126),
        sent(PING, b"x", final=False),
        sent(0, b"x"),  # goes on with nothing
        sent(BINARY, b"\0a", final=False) + sent(BINARY, b"\0b"),
    ],
)
async def test_who_breaks_the_protocol_is_told_so(hostile: bytes) -> None:
    async with connected() as (web, client):
        client.writer.write(hostile)
        while await web.receive() is not None:
            pass
        assert (await client.reader.readexactly(4)).endswith(b"\x03\xea")


@pytest.mark.parametrize("hostile", [b"\xff", b"\xff\0\0"])
async def test_a_signal_that_closes_no_channel_ends_it(hostile: bytes) -> None:
    assert await received(V5, sent(BINARY, hostile), sent(BINARY, b"\0x")) == []
