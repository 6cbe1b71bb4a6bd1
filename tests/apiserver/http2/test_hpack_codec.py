from __future__ import annotations

import hpack as reference
import pytest
from hpack.huffman import HuffmanEncoder
from hpack.huffman_constants import REQUEST_CODES, REQUEST_CODES_LENGTH
from hpack.table import HeaderTable
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.apiserver.http2 import hpack, huffman
from pilothouse.apiserver.http2.dispatcher import FieldBlock
from pilothouse.apiserver.http2.frames import ConnectionFailure, ErrorCode
from pilothouse.apiserver.http2.hpack import (
    STATIC_TABLE,
    Decoder,
    encode_request,
    encode_response,
    read_integer,
    write_integer,
)

ORDINARY = [b"accept", b"user-agent", b"x-new", b"authorization", b"a"]
NAMES = st.sampled_from([b":path", *ORDINARY])
VALUES = st.binary(max_size=300).map(lambda raw: bytes(0x20 + byte % 0x5F for byte in raw))
FIELDS = st.lists(st.tuples(NAMES, VALUES), max_size=12)


def coder() -> HuffmanEncoder:
    return HuffmanEncoder(REQUEST_CODES, REQUEST_CODES_LENGTH)


def test_the_static_table_is_that_of_the_rfc() -> None:
    assert STATIC_TABLE[1:] == tuple(HeaderTable.STATIC_TABLE)


@given(st.binary(max_size=400))
@settings(max_examples=60)
def test_what_is_huffman_coded_is_decoded(data: bytes) -> None:
    assert huffman.decode(coder().encode(data)) == data


@pytest.mark.parametrize("data", [b"\xff\xff\xff\xff", b"\x00", b"\xff" * 2 + b"\x00", b"\x1f\xff"])
def test_bad_padding_and_the_end_symbol_are_no_huffman_code(data: bytes) -> None:
    with pytest.raises(huffman.HuffmanError):
        huffman.decode(data)


@given(st.lists(st.tuples(FIELDS, st.booleans()), max_size=8), st.sampled_from([0, 60, 300, 4096]))
@settings(max_examples=60)
def test_a_decoder_follows_its_client_s_table(blocks: list[tuple[list[tuple[bytes, bytes]], bool]], size: int) -> None:
    hpack, decoder = reference.Encoder(), Decoder(1 << 20)
    for number, (fields, coded) in enumerate(blocks):
        if number == 2:
            hpack.header_table_size = size
        assert decoder.decode(hpack.encode(fields, huffman=coded)) == fields


@given(st.lists(st.tuples(st.sampled_from(ORDINARY), VALUES), max_size=6), st.sampled_from([100, 200, 201, 404, 503]))
@settings(max_examples=40)
def test_answers_are_read_by_a_client(fields: list[tuple[bytes, bytes]], status: int) -> None:
    decoded = reference.Decoder().decode(encode_response(status, fields), raw=True)
    assert [tuple(field) for field in decoded] == [(b":status", b"%d" % status), *fields]


def test_names_that_others_make_up_are_remembered_within_bounds() -> None:
    for number in range(3000):
        encode_request(b"GET", b"/", b"a", [(b"x-%d" % number, b""), (b"x-" + b"n" * 100 + b"%d" % number, b"")])
    assert len(hpack._NAMES) <= 1024
    assert max(map(len, hpack._NAMES)) <= 64


@given(st.integers(0, (1 << 28) - 1), st.sampled_from([0x0F, 0x1F, 0x3F, 0x7F]))
def test_integers_are_read_as_they_were_written(value: int, mask: int) -> None:
    assert read_integer(write_integer(value, mask, 0) + b"?", 0, mask)[0] == value


@given(st.binary(max_size=60))
@settings(max_examples=200)
def test_any_block_is_decoded_or_refused(block: bytes) -> None:
    try:
        Decoder(1000).decode(block)
    except ConnectionFailure:
        return


def test_a_list_over_the_limit_is_reported_and_the_table_stays_in_step() -> None:
    hpack, decoder = reference.Encoder(), Decoder(5000)
    assert decoder.decode(hpack.encode([(b"bomb", b"x" * 3000)])) == [(b"bomb", b"x" * 3000)]
    assert decoder.decode(hpack.encode([(b"bomb", b"x" * 3000)] * 3 + [(b"kept", b"here")])) is None
    assert decoder.decode(hpack.encode([(b"kept", b"here")])) == [(b"kept", b"here")]


def test_a_list_far_over_the_limit_is_not_decoded_to_its_end() -> None:
    hpack, decoder = reference.Encoder(), Decoder(5000)
    decoder.decode(hpack.encode([(b"bomb", b"x" * 3000)]))
    with pytest.raises(ConnectionFailure) as failure:
        decoder.decode(b"\xbe" * 4 + b"\x80")  # the broken field at the end is never reached
    assert failure.value.code == ErrorCode.PROTOCOL_ERROR


@pytest.mark.parametrize("block", [b"\x20" * 3 + b"\x82", b"\x82\x20", b"\x20\x82\x3f\xe1\x1f"])
def test_a_table_changes_its_size_at_most_twice_and_before_the_fields(block: bytes) -> None:
    assert Decoder(5000).decode(b"\x20\x3f\xe1\x1f\x82") == [(b":method", b"GET")]
    with pytest.raises(ConnectionFailure) as failure:
        Decoder(5000).decode(block)
    assert failure.value.code == ErrorCode.COMPRESSION_ERROR


@given(FIELDS, st.booleans(), st.integers(1, 50))
@settings(max_examples=60, deadline=None)
def test_a_block_may_come_in_parts_that_end_anywhere(fields: list[tuple[bytes, bytes]], coded: bool, part: int) -> None:
    long = (b"x-long" + b"n" * 9000, b"v" * 9000)
    block = reference.Encoder().encode([*fields, long, *fields], huffman=coded)
    sizes = [part * 7919 % 6000 + 1 for part in range(part, part + 70)]
    parts = FieldBlock(Decoder(1 << 20), 1, end_stream=True, deadline=0)
    for size in sizes:
        parts.add(block[:size])
        block = block[size:]
    parts.add(block)
    assert parts.end() == [*fields, long, *fields]


def test_many_short_parts_count_like_one_long_part() -> None:
    hpack, decoder = reference.Encoder(), Decoder(50_000)
    decoder.decode(hpack.encode([(b"bomb", b"x" * 3000)]))
    parts = FieldBlock(decoder, 1, end_stream=True, deadline=0)
    for _ in range(16):
        parts.add(b"\xbe")
    parts.add(b"\xbe")
    with pytest.raises(ConnectionFailure) as failure:
        parts.add(b"\xbe")
    assert failure.value.code == ErrorCode.PROTOCOL_ERROR
    assert parts.end() is None


@pytest.mark.parametrize(
    "block",
    [
        b"\x80",  # index 0
        b"\xbe",  # beyond the table
        b"\x7f\xff\xff\xff\xff\xff\x0f",  # a number without end
        b"\x00\x05abc",  # a string cut off
        b"\x3f\xe2\x1f",  # a table of 4097 bytes
        b"\x00\x01A\x01b",  # an upper-case name
        b"\x00\x01a\x02b\n",  # a line break in a value
        b"\x00",
    ],
)
def test_blocks_against_the_rules_are_refused(block: bytes) -> None:
    with pytest.raises(ConnectionFailure):
        Decoder(1 << 20).decode(block)


def test_names_that_others_make_up_are_not_kept_for_ever() -> None:
    for number in range(3000):
        encode_response(200, [(b"x-%d" % number, b"v"), (b"x-%d" % number + b"n" * 1000, b"v")])
    assert len(hpack._NAMES) <= 1024
    assert max(map(len, hpack._NAMES)) <= 64
    assert encode_response(200, [(b"connection", b"close")]) == encode_response(200, [])
