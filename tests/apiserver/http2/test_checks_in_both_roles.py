"""What the dispatcher checks holds whoever the peer is: a client, or another server."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from typing import TypeAlias

import pytest
from transport_double import Pipe

from pilothouse.apiserver.http import Request, Response
from pilothouse.apiserver.http2 import frames
from pilothouse.apiserver.http2.frames import ErrorCode, Setting
from pilothouse.apiserver.http2.reader import BURST
from pilothouse.apiserver.outbound.connection import INPUT
from pilothouse.apiserver.outbound.http2_connection import Http2BackendConnection
from pilothouse.apiserver.serving.http2_connection import Http2Connection
from pilothouse.apiserver.serving.limits import Limits
from pilothouse.apiserver.serving.state import ServingState

Say: TypeAlias = Callable[[bytes], None]


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return frames.frame_header(kind, flags, stream, len(payload)) + payload


def of_a_client(pipe: Pipe) -> Say:
    """A client's connection."""

    async def never(request: Request) -> Response:
        await asyncio.Event().wait()
        raise AssertionError

    connection = Http2Connection(ServingState(never, Limits()), asyncio.get_running_loop())
    connection.connection_made(pipe)
    connection.data_received(frames.PREFACE)
    return connection.data_received


def of_a_server(pipe: Pipe) -> Say:
    """A connection to a server that was asked for something on stream 1."""
    connection = backend(pipe)

    def say(data: bytes) -> None:
        deliver(connection, data)

    return say


def backend(pipe: Pipe) -> Http2BackendConnection:
    connection = Http2BackendConnection(asyncio.get_running_loop())
    connection.connection_made(pipe)
    stream = connection.stream()
    stream.send_head("POST", "/", [(b"host", b"a")])
    stream.flush()
    return connection


def deliver(connection: Http2BackendConnection, data: bytes) -> None:
    for at in range(0, len(data), len(INPUT.view)):
        piece = data[at : at + len(INPUT.view)]
        INPUT.view[: len(piece)] = piece
        connection.buffer_updated(len(piece))


HEADS: dict[Callable[[Pipe], Say], bytes] = {of_a_client: b"\x82\x84\x87", of_a_server: b"\x88"}  # GET https / · 200
GREETING = frames.settings({})
PING = frame(frames.PING, 0, 0, b"12345678")
PRIORITY = frame(frames.PRIORITY, 0, 1, bytes(5))
OVER = {
    "a push": (frame(frames.PUSH_PROMISE, 4, 1, bytes(4)), ErrorCode.PROTOCOL_ERROR),
    "a setting twice": (frame(frames.SETTINGS, 0, 0, b"\0\4\0\0\0\1" * 2), ErrorCode.PROTOCOL_ERROR),
    "more than 100 settings": (
        frame(frames.SETTINGS, 0, 0, b"".join(frames.SETTING.pack(name, 1) for name in range(100, 201))),
        ErrorCode.PROTOCOL_ERROR,
    ),
    "settings of the wrong size": (frame(frames.SETTINGS, 0, 0, bytes(5)), ErrorCode.FRAME_SIZE_ERROR),
    "settings on a stream": (frame(frames.SETTINGS, 0, 1, b""), ErrorCode.PROTOCOL_ERROR),
    "an acknowledgement of nothing": (2 * frames.SETTINGS_ACK, ErrorCode.PROTOCOL_ERROR),
    "a frame size out of range": (frames.settings({Setting.MAX_FRAME_SIZE: 1}), ErrorCode.PROTOCOL_ERROR),
    "a push setting out of range": (frames.settings({Setting.ENABLE_PUSH: 2}), ErrorCode.PROTOCOL_ERROR),
    "a window out of range": (frames.settings({Setting.INITIAL_WINDOW_SIZE: 1 << 31}), ErrorCode.FLOW_CONTROL_ERROR),
    "windows that overflow": (
        frames.window_update(1, 1 << 30) + frames.settings({Setting.INITIAL_WINDOW_SIZE: (1 << 31) - 1}),
        ErrorCode.FLOW_CONTROL_ERROR,
    ),
    "the connection's window overflows": (frames.window_update(0, (1 << 31) - 1), ErrorCode.FLOW_CONTROL_ERROR),
    "credit of the wrong size": (frame(frames.WINDOW_UPDATE, 0, 0, b"1"), ErrorCode.FRAME_SIZE_ERROR),
    "credit for an idle stream": (frames.window_update(9, 1), ErrorCode.PROTOCOL_ERROR),
    "a ping of the wrong size": (frame(frames.PING, 0, 0, b"1"), ErrorCode.FRAME_SIZE_ERROR),
    "a ping on a stream": (frame(frames.PING, 0, 1, bytes(8)), ErrorCode.PROTOCOL_ERROR),
    "a priority of the wrong size": (frame(frames.PRIORITY, 0, 1, b"1"), ErrorCode.FRAME_SIZE_ERROR),
    "a reset of the wrong size": (frame(frames.RST_STREAM, 0, 1, b"1"), ErrorCode.FRAME_SIZE_ERROR),
    "a reset of an idle stream": (frames.rst_stream(9, 8), ErrorCode.PROTOCOL_ERROR),
    "a farewell of the wrong size": (frame(frames.GOAWAY, 0, 0, bytes(7)), ErrorCode.FRAME_SIZE_ERROR),
    "a farewell on a stream": (frame(frames.GOAWAY, 0, 1, bytes(8)), ErrorCode.PROTOCOL_ERROR),
    "data on an idle stream": (frame(frames.DATA, 0, 9, b"x"), ErrorCode.PROTOCOL_ERROR),
    "data on an even stream": (frame(frames.DATA, 0, 2, b"x"), ErrorCode.PROTOCOL_ERROR),
    "data of the connection": (frame(frames.DATA, 0, 0, b"x"), ErrorCode.PROTOCOL_ERROR),
    "an even stream": (frame(frames.HEADERS, 4, 2, b"\x88"), ErrorCode.PROTOCOL_ERROR),
    "padding over the frame": (frame(frames.DATA, frames.PADDED, 1, b"\x09abc"), ErrorCode.PROTOCOL_ERROR),
    "a priority that is cut off": (frame(frames.HEADERS, 0x24, 1, bytes(4)), ErrorCode.FRAME_SIZE_ERROR),
    "a bad field block": (frame(frames.HEADERS, 4, 1, b"\x80"), ErrorCode.COMPRESSION_ERROR),
    "an interrupted field block": (frame(frames.HEADERS, 0, 1, b"") + PING, ErrorCode.PROTOCOL_ERROR),
    "a block continued elsewhere": (
        frame(frames.HEADERS, 0, 1, b"") + frame(frames.CONTINUATION, 4, 3, b""),
        ErrorCode.PROTOCOL_ERROR,
    ),
    "a continuation of nothing": (frame(frames.CONTINUATION, 4, 1, b""), ErrorCode.PROTOCOL_ERROR),
    "a block of too many frames": (
        frame(frames.HEADERS, 0, 1, b"") + frame(frames.CONTINUATION, 0, 1, b"") * 200,
        ErrorCode.ENHANCE_YOUR_CALM,
    ),
    "pings": (PING * 2 * BURST, ErrorCode.ENHANCE_YOUR_CALM),
    "settings": (GREETING * 2 * BURST, ErrorCode.ENHANCE_YOUR_CALM),
    "priorities": (PRIORITY * 2 * BURST, ErrorCode.ENHANCE_YOUR_CALM),
    "unknown frames": (frame(0x77, 0, 0, b"") * 2 * BURST, ErrorCode.ENHANCE_YOUR_CALM),
    "empty frames": (frame(frames.DATA, 0, 1, b"") * 2 * BURST, ErrorCode.ENHANCE_YOUR_CALM),
    "credit for nothing": (frames.window_update(0, 1) * 2 * BURST, ErrorCode.ENHANCE_YOUR_CALM),
    "resets of a closed stream": (frames.rst_stream(1, 8) * 2 * BURST, ErrorCode.ENHANCE_YOUR_CALM),
    "data for a closed stream": (
        frames.rst_stream(1, 8) + frame(frames.DATA, 0, 1, b"x") * 2 * BURST,
        ErrorCode.ENHANCE_YOUR_CALM,
    ),
    "fields for a closed stream": (
        frames.rst_stream(1, 8) + frame(frames.HEADERS, 4, 1, b"\x88") * 2 * BURST,
        ErrorCode.ENHANCE_YOUR_CALM,
    ),
}

ENDS_A_STREAM = {
    "its window overflows": (frames.window_update(1, (1 << 31) - 1), ErrorCode.FLOW_CONTROL_ERROR),
    "credit of nothing": (frames.window_update(1, 0), ErrorCode.FLOW_CONTROL_ERROR),
    "more data than granted": (frame(frames.DATA, 0, 1, bytes(16_384)) * 33, ErrorCode.FLOW_CONTROL_ERROR),
    "trailers that do not end it": (frame(frames.HEADERS, 4, 1, b""), ErrorCode.PROTOCOL_ERROR),
    "a pseudo-header as a trailer": (frame(frames.HEADERS, 5, 1, b"\x88"), ErrorCode.PROTOCOL_ERROR),
    "data after its end": (
        frame(frames.DATA, 1, 1, b"x") + frame(frames.DATA, 0, 1, b"x"),
        ErrorCode.STREAM_CLOSED,
    ),
    "fields after its end": (
        frame(frames.DATA, 1, 1, b"x") + frame(frames.HEADERS, 5, 1, b""),
        ErrorCode.STREAM_CLOSED,
    ),
}

both_roles = pytest.mark.parametrize("peer", [of_a_client, of_a_server])


async def settle() -> None:
    """Lets what was written or must wait its turn come."""
    for _ in range(100):
        await asyncio.sleep(0)


def frames_of(written: bytes) -> list[tuple[int, int, bytes]]:
    written = written.removeprefix(frames.PREFACE)
    found = []
    while written:
        high, low, kind, _, stream = frames.FRAME_HEADER.unpack_from(written)
        end = frames.HEADER_SIZE + (high << 8 | low)
        found.append((kind, stream, written[frames.HEADER_SIZE : end]))
        written = written[end:]
    return found


@both_roles
@pytest.mark.parametrize("name", OVER)
async def test_a_peer_that_breaks_the_protocol_is_told_and_loses_its_connection(
    peer: Callable[[Pipe], Say], name: str
) -> None:
    sent, code = OVER[name]
    pipe = Pipe()
    say = peer(pipe)
    say(GREETING + frame(frames.HEADERS, frames.END_HEADERS, 1, HEADS[peer]))
    say(sent)
    await settle()
    codes = [struct.unpack(">I", payload[4:8])[0] for kind, _, payload in frames_of(pipe.written) if kind == 7]
    assert codes == [code]
    assert pipe.closing


@both_roles
async def test_a_peer_begins_with_its_settings(peer: Callable[[Pipe], Say]) -> None:
    pipe = Pipe()
    peer(pipe)(PING)
    await settle()
    assert pipe.closing


@both_roles
@pytest.mark.parametrize("name", ENDS_A_STREAM)
async def test_a_peer_that_breaks_the_protocol_on_a_stream_loses_the_stream(
    peer: Callable[[Pipe], Say], name: str
) -> None:
    sent, code = ENDS_A_STREAM[name]
    pipe = Pipe()
    say = peer(pipe)
    say(GREETING + frame(frames.HEADERS, frames.END_HEADERS, 1, HEADS[peer]))
    say(sent)
    await settle()
    resets = [(stream, frames.read_long(payload)) for kind, stream, payload in frames_of(pipe.written) if kind == 3]
    assert resets == [(1, code)]
    assert not pipe.closing


async def test_what_another_server_sends_is_taken_in_turns() -> None:
    pipe = Pipe()
    connection = backend(pipe)
    stream = connection.streams[1]
    deliver(connection, GREETING + frame(frames.HEADERS, frames.END_HEADERS, 1, b"\x88"))
    deliver(connection, frame(frames.DATA, 0, 1, b"x") * 20_000)
    connection.connection_lost(None)
    turns = 0
    while pipe.paused:
        assert not stream.ended
        turns += 1
        await asyncio.sleep(0)
    assert turns >= 10
    body = stream.body()
    assert len(await anext(body)) == 20_000
    connection.close()
