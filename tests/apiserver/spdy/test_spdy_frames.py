"""Frames of SPDY as bytes, and back; and what is not taken from anybody."""

from __future__ import annotations

import asyncio
import zlib
from contextlib import suppress
from hashlib import sha256

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pilothouse.apiserver.spdy.connection import FrameReader
from pilothouse.apiserver.spdy.frames import (
    Data,
    Frame,
    GoAway,
    MoreHeaders,
    Ping,
    RstStream,
    Settings,
    SpdyError,
    SynReply,
    SynStream,
    WindowUpdate,
    encode,
)
from pilothouse.apiserver.spdy.header_block import DICTIONARY, HeaderCompressor


async def frames_of(data: bytes) -> list[Frame]:
    reader = asyncio.StreamReader()
    reader.feed_data(data)
    reader.feed_eof()
    frames, found = FrameReader(reader), []
    while (frame := await frames.read()) is not None:
        found.append(frame)
    return found


def written(*frames: Frame) -> bytes:
    compressor = HeaderCompressor()
    return b"".join(encode(frame, compressor) for frame in frames)


def test_the_dictionary_is_that_of_the_protocol() -> None:
    digest = "51d27341373f923f3cd88e1eb7162aeaa3723d7585ff2399201dc06498407f02"
    assert sha256(DICTIONARY).hexdigest() == digest


STREAMS = ("error", "stdin", "stdout", "stderr")

VECTORS = [
    (Ping(1), "80030006 00000004 00000001"),
    (RstStream(5, 5), "80030003 00000008 00000005 00000005"),
    (GoAway(3), "80030007 00000008 00000003 00000000"),
    (WindowUpdate(1, 65536), "80030009 00000008 00000001 00010000"),
    (Settings(((1, 4, 100),)), "80030004 0000000c 00000001 01000004 00000064"),
    (Settings((), clear=True), "80030004 01000004 00000000"),
    (Data(3, b"hi"), "00000003 00000002 6869"),
    (Data(3, b"", fin=True), "00000003 01000000"),
]


@pytest.mark.parametrize(("frame", "vector"), VECTORS)
async def test_frames_are_written_and_read_as_the_protocol_says(frame: Frame, vector: str) -> None:
    assert written(frame) == bytes.fromhex(vector)
    assert await frames_of(bytes.fromhex(vector)) == [frame]


KUBECTL = """
80030001 00000029 00000001 00000000 0000 78f9e3c6a7c26260606004a7b392a2d4c45c6851c29a0a0a6800000000ffff
80030001 00000017 00000003 00000000 0000 c22e555c92929907000000ffff
80030001 00000019 00000005 00000000 0000 c22ac5565c92925f5a02000000ffff
80030001 00000015 00000007 00000000 0000 c229975a5404000000ffff
"""
"""What kubectl sends for `kubectl exec -i`: each stream compressed with those before it."""


async def test_the_streams_of_kubectl_are_read() -> None:
    expected = [SynStream(1 + 2 * place, {"streamtype": (name,)}) for place, name in enumerate(STREAMS)]
    assert await frames_of(bytes.fromhex(KUBECTL)) == expected


ids = st.integers(1, 2**31 - 1)
words = st.text("abc Ü€\n", max_size=10)
names = st.text("abcdefghijklmnopqrstuvwxyz-", min_size=1, max_size=12)
headers = st.dictionaries(names, st.lists(words, min_size=1, max_size=3).map(tuple), max_size=5)
frames = st.one_of(
    st.builds(SynStream, ids, headers, st.booleans(), st.booleans(), st.integers(0, 2**31 - 1), st.integers(0, 7)),
    st.builds(SynReply, ids, headers, st.booleans()),
    st.builds(MoreHeaders, ids, headers, st.booleans()),
    st.builds(RstStream, ids, st.integers(1, 2**32 - 1)),
    st.builds(GoAway, ids, st.integers(0, 2)),
    st.builds(Ping, st.integers(1, 2**32 - 1)),
    st.builds(WindowUpdate, ids, ids),
    st.builds(Data, ids, st.binary(max_size=100), st.booleans()),
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(frames, max_size=5))
def test_what_is_written_is_read_again(several: list[Frame]) -> None:
    assert asyncio.run(frames_of(written(*several))) == several


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=60), st.integers(1, 10))
def test_whatever_is_received_is_a_frame_or_an_error_of_the_protocol(payload: bytes, kind: int) -> None:
    head = bytes((0x80, 3, 0, kind)) + len(payload).to_bytes(4, "big")
    with suppress(SpdyError):
        asyncio.run(frames_of(head + payload))


async def test_data_is_passed_on_in_pieces_and_ends_with_the_last() -> None:
    read = await frames_of(written(Data(1, b"x" * 200_000, fin=True)))
    assert [type(each) for each in read] == [Data] * len(read)
    pieces = [each for each in read if isinstance(each, Data)]
    assert max(len(each.data) for each in pieces) <= 64 * 1024
    assert sum(len(each.data) for each in pieces) == 200_000
    assert [each.fin for each in pieces] == [False] * (len(pieces) - 1) + [True]


def bomb() -> bytes:
    """Headers that take a few bytes, and a megabyte when they are not compressed."""
    deflate = zlib.compressobj(9, zdict=DICTIONARY)
    plain = b"\0\0\0\1\0\0\0\1x\0\x10\0\0" + bytes(1 << 20)
    block = deflate.compress(plain) + deflate.flush(zlib.Z_SYNC_FLUSH)
    return bytes.fromhex("80030002") + (4 + len(block)).to_bytes(4, "big") + b"\0\0\0\1" + block


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (bytes.fromhex("80020006 00000004 00000001"), "version 2"),
        (bytes.fromhex("80030005 00000000"), "type 5"),
        (bytes.fromhex("80030001 00ffffff"), "16777215 bytes"),
        (bytes.fromhex("80030003 00000008 00000000 00000001"), "zero"),
        (bytes.fromhex("00000000 00000001 00"), "zero"),
        (bytes.fromhex("80030004 00000004 0fffffff"), "settings"),
        (bytes.fromhex("80030002 00000006 00000001 ffff"), "invalid headers"),
        (bomb(), "too long"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_what_breaks_the_protocol_or_the_bounds_is_an_error(data: bytes, problem: str) -> None:
    with pytest.raises(SpdyError, match=problem):
        await frames_of(data)
