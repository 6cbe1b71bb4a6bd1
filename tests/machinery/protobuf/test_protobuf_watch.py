"""Watch streams: frames out, frames in, in pieces of any size."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.machinery.protobuf.codec import decode, encode
from pilothouse.machinery.protobuf.envelope import FrameDecoder, WatchFrame, watch_event
from pilothouse.machinery.protobuf.wire import ProtobufError

OBJECT = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}}


def test_an_event_is_its_length_its_type_and_its_object_in_an_envelope() -> None:
    assert watch_event("ADDED", b"obj").hex(" ") == (
        "00 00 00 0e 0a 05 41 44 44 45 44 12 05 0a 03 6f 62 6a"
    )  # type = 1; object = 2, a RawExtension whose raw = 1


def test_an_object_comes_out_of_the_stream_as_it_went_in() -> None:
    [frame] = FrameDecoder().feed(watch_event("MODIFIED", encode(OBJECT)))
    assert frame.type == "MODIFIED"
    assert decode(frame.object) == OBJECT


@settings(max_examples=60, deadline=None)
@given(
    events=st.lists(st.builds(WatchFrame, st.sampled_from(["ADDED", "DELETED"]), st.binary(max_size=300)), max_size=5),
    cuts=st.lists(st.integers(0, 1500), max_size=8),
)
def test_how_a_stream_is_cut_into_pieces_does_not_matter(events: list[WatchFrame], cuts: list[int]) -> None:
    stream = b"".join(watch_event(event.type, event.object) for event in events)
    edges = sorted({0, len(stream), *(min(cut, len(stream)) for cut in cuts)})
    decoder = FrameDecoder()
    found = [frame for a, b in pairwise(edges) for frame in decoder.feed(stream[a:b])]
    decoder.close()
    assert found == events


def test_a_stream_that_ends_within_an_event_is_refused() -> None:
    decoder = FrameDecoder()
    assert decoder.feed(watch_event("ADDED", b"obj")[:-1]) == []
    with pytest.raises(ProtobufError, match="unexpected EOF"):
        decoder.close()


def test_an_event_longer_than_the_limit_is_refused_before_it_arrives() -> None:
    with pytest.raises(ProtobufError, match="longer than maximum allowed size"):
        FrameDecoder(limit=10).feed(b"\x00\x00\x00\x0b")


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=40))
def test_a_frame_of_random_bytes_is_read_or_refused(body: bytes) -> None:
    with suppress(ProtobufError):
        [frame] = FrameDecoder().feed(len(body).to_bytes(4, "big") + body)
        assert isinstance(frame, WatchFrame)
