"""Clients that break HTTP/2, by accident or on purpose."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import hpack
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from patience import PATIENCE
from serving_harness import Http1Client, Http2Client, answering, client_context, secure_options, serving
from transport_double import Pipe

from pilothouse.apiserver.http import Request, Response
from pilothouse.apiserver.http2 import frames
from pilothouse.apiserver.http2.frames import ErrorCode, frame_header
from pilothouse.apiserver.http2.reader import BURST
from pilothouse.apiserver.serving.http2_connection import Http2Connection
from pilothouse.apiserver.serving.limits import Limits
from pilothouse.apiserver.serving.state import ServingState
from pilothouse.controlplane.certificates.paths import CertificatePaths

GREETING = frames.PREFACE + frames.settings({})
GET = [(":method", "GET"), (":path", "/"), (":scheme", "https"), (":authority", "a")]


def fields(lines: list[tuple[str, str]] = GET) -> bytes:
    return hpack.Encoder().encode(lines)


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return frame_header(kind, flags, stream, len(payload)) + payload


def headers(stream: int, lines: list[tuple[str, str]] = GET, flags: int = frames.END_STREAM) -> bytes:
    return frame(frames.HEADERS, flags | frames.END_HEADERS, stream, fields(lines))


class Outcome:
    """What a server wrote before it closed."""

    def __init__(self, data: bytes) -> None:
        self.goaway: ErrorCode | None = None
        self.resets: dict[int, ErrorCode] = {}
        while data:
            high, low, kind, _, stream = frames.FRAME_HEADER.unpack_from(data)
            payload, data = data[9 : 9 + (high << 8 | low)], data[9 + (high << 8 | low) :]
            if kind == frames.GOAWAY:
                self.goaway = ErrorCode(struct.unpack(">I", payload[4:8])[0])
            elif kind == frames.RST_STREAM:
                self.resets[stream] = ErrorCode(frames.read_long(payload))


@asynccontextmanager
async def raw(pki: CertificatePaths, limits: Limits | None = None) -> AsyncIterator[Http1Client]:
    async with serving(answering(b"fine"), secure_options(pki), limits=limits) as server:
        client = await Http1Client.connect(server.port, client_context(pki, alpn="h2"))
        yield client
        client.close()


BROKEN = {
    "no preface": (b"GET / HTTP/1.1\r\n\r\n", ErrorCode.PROTOCOL_ERROR),
    "no settings": (frames.PREFACE + headers(1), ErrorCode.PROTOCOL_ERROR),
    "an even stream": (GREETING + headers(2), ErrorCode.PROTOCOL_ERROR),
    "stream zero": (GREETING + headers(0), ErrorCode.PROTOCOL_ERROR),
    "data on an idle stream": (GREETING + frame(frames.DATA, 0, 7, b"x"), ErrorCode.PROTOCOL_ERROR),
    "a reset of an idle stream": (GREETING + frames.rst_stream(9, 8), ErrorCode.PROTOCOL_ERROR),
    "a frame that is too large": (GREETING + frame_header(frames.DATA, 0, 1, 16_385), ErrorCode.FRAME_SIZE_ERROR),
    "padding over the frame": (
        GREETING + frame(frames.HEADERS, frames.PADDED | frames.END_HEADERS, 1, b"\x09abc"),
        ErrorCode.PROTOCOL_ERROR,
    ),
    "an interrupted field block": (
        GREETING + frame(frames.HEADERS, 0, 1, fields()) + frame(frames.PING, 0, 0, b"12345678"),
        ErrorCode.PROTOCOL_ERROR,
    ),
    "a continuation of nothing": (GREETING + frame(frames.CONTINUATION, 4, 1, fields()), ErrorCode.PROTOCOL_ERROR),
    "a ping of the wrong size": (GREETING + frame(frames.PING, 0, 0, b"1"), ErrorCode.FRAME_SIZE_ERROR),
    "settings of the wrong size": (GREETING + frame(frames.SETTINGS, 0, 0, b"12345"), ErrorCode.FRAME_SIZE_ERROR),
    "a setting twice": (GREETING + frame(frames.SETTINGS, 0, 0, b"\0\4\0\0\0\1" * 2), ErrorCode.PROTOCOL_ERROR),
    "more than 100 settings": (
        GREETING + frame(frames.SETTINGS, 0, 0, b"".join(frames.SETTING.pack(name, 1) for name in range(100, 201))),
        ErrorCode.PROTOCOL_ERROR,
    ),
    "an acknowledgement of nothing": (GREETING + 2 * frames.SETTINGS_ACK, ErrorCode.PROTOCOL_ERROR),
    "settings on a stream": (GREETING + frame(frames.SETTINGS, 0, 1, b""), ErrorCode.PROTOCOL_ERROR),
    "a frame size out of range": (GREETING + frames.settings({frames.Setting(5): 1}), ErrorCode.PROTOCOL_ERROR),
    "a window out of range": (
        GREETING + frames.settings({frames.Setting(4): 1 << 31}),
        ErrorCode.FLOW_CONTROL_ERROR,
    ),
    "a window that overflows": (GREETING + frames.window_update(0, (1 << 31) - 1), ErrorCode.FLOW_CONTROL_ERROR),
    "a push": (GREETING + frame(frames.PUSH_PROMISE, 0, 1, b"1234"), ErrorCode.PROTOCOL_ERROR),
    "a bad field block": (GREETING + frame(frames.HEADERS, 4, 1, b"\x80"), ErrorCode.COMPRESSION_ERROR),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_a_client_that_breaks_the_protocol_is_told_and_loses_its_connection(
    pki: CertificatePaths, name: str
) -> None:
    sent, code = BROKEN[name]
    async with raw(pki) as client:
        client.send(sent)
        assert Outcome(await client.end()).goaway == code


MALFORMED = {
    "a missing path": headers(1, [(":method", "GET"), (":scheme", "https")]),
    "a pseudo-header twice": headers(1, [*GET, (":path", "/")]),
    "an unknown pseudo-header": headers(1, [*GET, (":status", "200")]),
    "a pseudo-header after a header": headers(1, [GET[0], ("x", "y"), *GET[1:]]),
    "a connection header": headers(1, [*GET, ("connection", "close")]),
    "te": headers(1, [*GET, ("te", "gzip")]),
    "a length without a body": headers(1, [*GET, ("content-length", "5")]),
    "two lengths": headers(1, [*GET, ("content-length", "5"), ("content-length", "6")], 0),
    "a body shorter than declared": headers(1, [*GET, ("content-length", "5")], 0)
    + frame(frames.DATA, frames.END_STREAM, 1, b"abc"),
    "a window that overflows": headers(1, flags=0) + frames.window_update(1, (1 << 31) - 1),
    "more data than granted": headers(1, flags=0) + 5 * frame(frames.DATA, 0, 1, b"x" * 16_384),
}


@pytest.mark.parametrize("name", MALFORMED)
async def test_a_malformed_request_is_reset_and_others_live_on(pki: CertificatePaths, name: str) -> None:
    waiting = asyncio.Event()

    async def handler(request: Request) -> Response:
        if request.path == "/":
            await waiting.wait()
        return Response(200, b"fine")

    async with serving(handler, secure_options(pki)) as server:
        client = await Http1Client.connect(server.port, client_context(pki, alpn="h2"))
        last = headers(3, [(":method", "GET"), (":path", "/good"), *GET[2:]])
        client.send(GREETING + MALFORMED[name] + last)
        async with asyncio.timeout(PATIENCE):
            written = await client.reader.readuntil(b"fine")
        assert Outcome(written).resets.keys() == {1}
        client.close()


@pytest.mark.parametrize(
    "flood",
    [
        frame(frames.PING, 0, 0, b"12345678"),
        frames.settings({}),
        frame(frames.PRIORITY, 0, 1, b"\0\0\0\0\0"),
        frame(0x77, 0, 0, b""),
    ],
)
async def test_a_flood_of_frames_that_ask_for_nothing_ends_the_connection(pki: CertificatePaths, flood: bytes) -> None:
    async with raw(pki) as client:
        client.send(GREETING + flood * (2 * BURST))
        assert Outcome(await client.end()).goaway == ErrorCode.ENHANCE_YOUR_CALM


async def test_a_flood_of_empty_data_frames_ends_the_connection(pki: CertificatePaths) -> None:
    async with serving(_wait_for_body, secure_options(pki)) as server:
        client = await Http1Client.connect(server.port, client_context(pki, alpn="h2"))
        client.send(GREETING + headers(1, flags=0) + frame(frames.DATA, 0, 1, b"") * (2 * BURST))
        assert Outcome(await client.end()).goaway == ErrorCode.ENHANCE_YOUR_CALM


async def _wait_for_body(request: Request) -> Response:
    return Response(200, await request.read_body(1000))


async def test_a_client_may_grant_credit_for_all_that_it_is_sent(pki: CertificatePaths) -> None:
    async def events() -> AsyncIterator[bytes]:
        for _ in range(2 * BURST):
            yield b"x" * 130
        await all_granted.wait()
        yield b"the end"

    all_granted = asyncio.Event()
    async with serving(answering(events), secure_options(pki)) as server:
        client = await Http2Client.connect(server.port, client_context(pki, alpn="h2"))
        stream = client.ask("/")
        log, granted = client.streams[stream], 0
        while granted < 2 * BURST:
            await client.until(lambda: len(log.body) >= (granted + 1) * 130)  # noqa: B023
            client.grant(stream, 130)
            granted += 1
        all_granted.set()
        assert (await client.answer(stream)).body.endswith(b"the end")


async def test_what_comes_of_a_body_after_its_refusal_is_no_flood(pki: CertificatePaths) -> None:
    async with serving(answering(b"no", 413), secure_options(pki)) as server:
        client = await Http1Client.connect(server.port, client_context(pki, alpn="h2"))
        client.send(GREETING)
        for stream in range(1, 4 * BURST, 2):
            client.send(headers(stream, flags=0))
            async with asyncio.timeout(PATIENCE):
                await client.reader.readuntil(frames.rst_stream(stream, 0))
            client.send(frame(frames.DATA, frames.END_STREAM, stream, b"late"))
        client.send(frames.ping(b"the end."))
        async with asyncio.timeout(PATIENCE):
            await client.reader.readuntil(b"the end.")
        client.close()


async def test_rapid_resets_start_no_handlers_and_end_the_connection(pki: CertificatePaths) -> None:
    started: list[str] = []

    async def handler(request: Request) -> Response:
        started.append(request.path)
        await asyncio.Event().wait()
        return Response(200, b"")

    async with serving(handler, secure_options(pki), limits=Limits(http2_streams=10)) as server:
        client = await Http1Client.connect(server.port, client_context(pki, alpn="h2"))
        for stream in range(1, 4 * BURST, 2):
            client.send((GREETING if stream == 1 else b"") + headers(stream) + frames.rst_stream(stream, 8))
        assert Outcome(await client.end()).goaway == ErrorCode.ENHANCE_YOUR_CALM
        assert len(started) <= 20


async def test_handlers_of_reset_streams_count_until_they_return(pki: CertificatePaths) -> None:
    release = asyncio.Event()
    running: list[str] = []

    async def handler(request: Request) -> Response:
        running.append(request.path)
        await release.wait()
        return Response(200, b"")

    async with serving(handler, secure_options(pki), limits=Limits(http2_streams=2)) as server:
        client = await Http2Client.connect(server.port, client_context(pki, alpn="h2"))
        await client.until(lambda: client.h2.remote_settings.max_concurrent_streams == 2)
        for _ in range(4):
            client.h2.reset_stream(client.ask("/"), 8)
        log = await client.get("/refused")
        assert log.reset == ErrorCode.REFUSED_STREAM
        assert len(running) <= 4
        release.set()


async def test_streams_over_the_limit_are_refused(pki: CertificatePaths) -> None:
    async with serving(_wait_for_body, secure_options(pki), limits=Limits(http2_streams=2)) as server:
        client = await Http1Client.connect(server.port, client_context(pki, alpn="h2"))
        client.send(GREETING + headers(1, flags=0) + headers(3, flags=0) + headers(5, flags=0))
        data = b""
        async with asyncio.timeout(PATIENCE):
            while not Outcome(data).resets:
                data += await client.reader.read(65536)
        assert Outcome(data).resets == {5: ErrorCode.REFUSED_STREAM}
        client.close()


async def test_a_field_block_without_end_is_cut_off(pki: CertificatePaths) -> None:
    async with raw(pki, Limits(header_bytes=50_000)) as client:
        client.send(GREETING + frame(frames.HEADERS, 0, 1, b""))
        client.send(frame(frames.CONTINUATION, 0, 1, b"") * 200)
        assert Outcome(await client.end()).goaway == ErrorCode.ENHANCE_YOUR_CALM


FRAMES = st.builds(
    frame, st.integers(0, 10), st.integers(0, 255), st.sampled_from([0, 1, 2, 3, 5]), st.binary(max_size=40)
)
VALID = st.sampled_from([headers(1), headers(3, flags=0), frames.window_update(3, 5), frames.rst_stream(1, 0)])


@given(st.lists(st.one_of(FRAMES, VALID), max_size=12), st.integers(1, 64))
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_sequence_of_frames_makes_the_server_fail(sent: list[bytes], piece: int) -> None:
    async def scenario() -> None:
        connection = Http2Connection(ServingState(answering(b"fine"), Limits()), asyncio.get_running_loop())
        connection.connection_made(Pipe())
        data = GREETING + b"".join(sent)
        for at in range(0, len(data), piece):
            connection.data_received(data[at : at + piece])
            await asyncio.sleep(0)
        connection.connection_lost(None)

    asyncio.run(scenario())
