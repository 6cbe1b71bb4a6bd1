"""Clients that turn HTTP/2 against a server, without credentials: for tests, and for whoever measures stalls.

`FLOODS` is the table of attacks. `play` plays one, and returns how the server ended it.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from struct import unpack_from

import hpack
from patience import PATIENCE

from pilothouse.apiserver.http2 import frames
from pilothouse.apiserver.http2.frames import ErrorCode, Setting
from pilothouse.apiserver.http2.hpack import write_integer

MEGABYTE = 1 << 20
_PIECE = 64 << 10
_FRAME = frames.DEFAULT_FRAME_SIZE
_GREETING = frames.PREFACE + frames.settings({})
_STILL_THERE = b"still on"


@dataclass(frozen=True, slots=True)
class Flood:
    """What is sent once the server has answered what is sent first, and how a good server ends it."""

    flood: Callable[[], bytes]
    ends_with: ErrorCode | None
    """The code of its GOAWAY; None where the flood is a request, which is answered."""
    first: Callable[[], bytes] = lambda: _GREETING
    answers: int = 0
    """To what is sent first; they are awaited."""


@dataclass(slots=True)
class Outcome:
    """What a server said."""

    goaway: ErrorCode | None = None
    statuses: list[int] = field(default_factory=list)
    resets: int = 0
    survived: bool = False
    """The connection was still good after the flood."""
    closed: bool = False


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return frames.frame_header(kind, flags, stream, len(payload)) + payload


def get(stream: int, path: str, *, end: int = frames.END_STREAM, more: bytes = b"") -> bytes:
    lines = [(":method", "GET"), (":scheme", "https"), (":authority", "a"), (":path", path)]
    block = hpack.Encoder().encode(lines, huffman=False) + more
    return frames.header_frames(stream, block, end_stream=bool(end), frame_size=_FRAME)


def field_block(stream: int, block: bytes) -> bytes:
    """A block of fields as a HEADERS frame and what continues it."""
    return frames.header_frames(stream, block, end_stream=True, frame_size=_FRAME)


# What is sent first


def stalled_streams() -> bytes:
    """A hundred requests whose answers may not be sent."""
    closed = frames.PREFACE + frames.settings({Setting.INITIAL_WINDOW_SIZE: 0})
    return closed + b"".join(get(stream, "/version") for stream in range(1, 200, 2))


def one_request() -> bytes:
    return _GREETING + get(1, "/livez")


def an_open_request() -> bytes:
    return _GREETING + get(1, "/livez", end=0)


# Floods


def settings_flood() -> bytes:
    """6.5 MB of settings, each of which resizes the windows of all streams."""
    resizes = b"".join(frames.SETTING.pack(Setting.INITIAL_WINDOW_SIZE, size % 2) for size in range(2730))
    return frame(frames.SETTINGS, 0, 0, resizes) * 400


def resized_windows() -> bytes:
    return b"".join(frames.settings({Setting.INITIAL_WINDOW_SIZE: size % 2}) for size in range(20_000))


def settings_acks() -> bytes:
    return frames.SETTINGS_ACK * 100_000


def indexed_fields() -> bytes:
    return field_block(1, b"\x82" * MEGABYTE)


def indexed_fields_frame_by_frame() -> bytes:
    """Each request has a table entry of 4 kB 16,000 times."""
    large = b"\x40\x01a" + write_integer(3900, 0x7F, 0) + b"x" * 3900
    many = [field_block(stream, b"\xbe" * 16_000) for stream in range(3, 131, 2)]
    return get(1, "/livez", more=large) + b"".join(many)


def table_resizes() -> bytes:
    return field_block(1, b"\x20" * (MEGABYTE - 1) + b"\x82")


def continuations() -> bytes:
    return frame(frames.HEADERS, 0, 1, b"") + frame(frames.CONTINUATION, 0, 1, b"") * 100_000


def window_updates() -> bytes:
    return frames.window_update(0, 1) * 200_000


def stream_window_updates() -> bytes:
    """To a closed stream."""
    return frames.window_update(1, 1) * 200_000


def closed_stream_headers() -> bytes:
    return get(1, "/livez") * 50_000


def closed_stream_data() -> bytes:
    return frame(frames.DATA, 0, 1, b"x") * 100_000


def empty_data() -> bytes:
    return frame(frames.DATA, 0, 1, b"") * 100_000


def padded_data() -> bytes:
    return frame(frames.DATA, frames.PADDED, 1, b"\x03\0\0\0") * 15_000


def pings() -> bytes:
    return frames.ping(b"12345678") * 50_000


def ping_acks() -> bytes:
    return frames.ping_ack(b"12345678") * 50_000


def priorities() -> bytes:
    return frame(frames.PRIORITY, 0, 1, bytes(5)) * 50_000


def unknown_frames() -> bytes:
    return frame(0x77, 0, 0, b"") * 100_000


def goaways() -> bytes:
    return frames.goaway(0, 0) * 50_000


def malformed_requests() -> bytes:
    return b"".join(frame(frames.HEADERS, 5, stream, b"\x82") for stream in range(1, 100_000, 2))


# Large requests, which a server answers


def query_string() -> bytes:
    """262,000 parameters."""
    return get(1, "/api/v1/pods?" + "a=b&" * ((MEGABYTE - 2000) // 4))


def escaped_query_string() -> bytes:
    return get(1, "/api/v1/pods?a=" + "%41" * ((MEGABYTE - 2000) // 3))


def query_string_of_a_selector() -> bytes:
    return get(1, "/api/v1/pods?fieldSelector=" + "a=b," * ((MEGABYTE - 2000) // 4))


def escaped_path() -> bytes:
    return get(1, "/" + "%41" * ((MEGABYTE - 2000) // 3))


def huffman_coded_path() -> bytes:
    """`////aaaaaaaa…`: 5 bits a character, and almost as long as it may be."""
    coded = b"\x61\x86\x18" + b"\x18\xc6\x31\x8c\x63" * ((MEGABYTE - 2000) // 8)
    path = b"\x04" + write_integer(len(coded), 0x7F, 0x80) + coded
    return field_block(1, b"\x82\x87\x01\x01a" + path)


def many_fields() -> bytes:
    return get(1, "/livez", more=b"\x90" * 17_000)


FLOODS = {
    "settings": Flood(settings_flood, ErrorCode.PROTOCOL_ERROR, stalled_streams, answers=100),
    "resized windows": Flood(resized_windows, ErrorCode.ENHANCE_YOUR_CALM, stalled_streams, answers=100),
    "settings acks": Flood(settings_acks, ErrorCode.PROTOCOL_ERROR),
    "indexed fields": Flood(indexed_fields, ErrorCode.PROTOCOL_ERROR),
    "indexed fields, frame by frame": Flood(indexed_fields_frame_by_frame, ErrorCode.PROTOCOL_ERROR),
    "table resizes": Flood(table_resizes, ErrorCode.COMPRESSION_ERROR),
    "continuations": Flood(continuations, ErrorCode.ENHANCE_YOUR_CALM),
    "window updates": Flood(window_updates, ErrorCode.ENHANCE_YOUR_CALM),
    "window updates, stalled streams": Flood(window_updates, ErrorCode.ENHANCE_YOUR_CALM, stalled_streams, answers=100),
    "window updates of a closed stream": Flood(
        stream_window_updates, ErrorCode.ENHANCE_YOUR_CALM, one_request, answers=1
    ),
    "headers on a closed stream": Flood(closed_stream_headers, ErrorCode.ENHANCE_YOUR_CALM, one_request, answers=1),
    "data on a closed stream": Flood(closed_stream_data, ErrorCode.ENHANCE_YOUR_CALM, one_request, answers=1),
    "empty data": Flood(empty_data, ErrorCode.ENHANCE_YOUR_CALM, an_open_request),
    "padding": Flood(padded_data, ErrorCode.ENHANCE_YOUR_CALM, an_open_request),
    "pings": Flood(pings, ErrorCode.ENHANCE_YOUR_CALM),
    "ping acks": Flood(ping_acks, ErrorCode.ENHANCE_YOUR_CALM),
    "priorities": Flood(priorities, ErrorCode.ENHANCE_YOUR_CALM),
    "unknown frames": Flood(unknown_frames, ErrorCode.ENHANCE_YOUR_CALM),
    "goaways": Flood(goaways, ErrorCode.ENHANCE_YOUR_CALM, stalled_streams, answers=100),
    "malformed requests": Flood(malformed_requests, ErrorCode.ENHANCE_YOUR_CALM),
    "query string": Flood(query_string, None),
    "escaped query string": Flood(escaped_query_string, None),
    "query string of a selector": Flood(query_string_of_a_selector, None),
    "escaped path": Flood(escaped_path, None),
    "Huffman-coded path": Flood(huffman_coded_path, None),
    "many fields": Flood(many_fields, None),
}


async def play(flood: Flood, host: str, port: int, context: ssl.SSLContext) -> Outcome:
    """Floods the server until it has ended the connection, taken in the flood or, if that is due, answered.

    `context` speaks h2.
    """
    data = flood.flood() + frames.ping(_STILL_THERE)
    async with asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection(host, port, ssl=context)
        client = _Client(reader)
        try:
            writer.write(flood.first())
            await client.read_until(lambda said: len(said.statuses) == flood.answers)
            done = asyncio.create_task(client.read_until(lambda said: _is_over(flood, said)))
            for at in range(0, len(data), _PIECE):
                if done.done():
                    break
                writer.write(data[at : at + _PIECE])
                await writer.drain()
            await done
        except ConnectionError:
            client.said.closed = True
        finally:
            writer.transport.abort()
    return client.said


def _is_over(flood: Flood, said: Outcome) -> bool:
    if flood.ends_with is None:
        return len(said.statuses) > flood.answers
    return said.goaway is not None or said.survived


class _Client:
    """Reads the frames that tell how the server fares."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self.said = Outcome()
        self._reader = reader
        self._buffer = b""
        self._decoder = hpack.Decoder()

    async def read_until(self, enough: Callable[[Outcome], bool]) -> None:
        while not enough(self.said) and not self.said.closed:
            data = await self._reader.read(_PIECE)
            self.said.closed = not data
            self._buffer += data
            self._read_frames()

    def _read_frames(self) -> None:
        while len(self._buffer) >= frames.HEADER_SIZE:
            high, low, kind, _, _ = frames.FRAME_HEADER.unpack_from(self._buffer)
            end = frames.HEADER_SIZE + (high << 8 | low)
            if len(self._buffer) < end:
                return
            self._note(kind, self._buffer[frames.HEADER_SIZE : end])
            self._buffer = self._buffer[end:]

    def _note(self, kind: int, payload: bytes) -> None:
        if kind == frames.GOAWAY:
            self.said.goaway = ErrorCode(unpack_from(">I", payload, 4)[0])
        elif kind == frames.RST_STREAM:
            self.said.resets += 1
        elif kind == frames.PING and payload == _STILL_THERE:
            self.said.survived = True
        elif kind == frames.HEADERS:
            self.said.statuses.append(int(dict(self._decoder.decode(payload, raw=True))[b":status"]))
