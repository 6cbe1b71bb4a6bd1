"""CBOR as upstream's serializer reads and writes it. Refusals are as kube-apiserver v1.36 words them."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import cbor2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pilothouse.machinery.cbor.decoding import decode, diagnose
from pilothouse.machinery.cbor.encoding import encode, encode_object
from pilothouse.machinery.cbor.wellformed import CborError

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: not number.is_integer())
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=40,
)

ANY_MACHINE = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def _text(value: Any) -> Any:
    """What another's decoder read, with text for bytes."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, dict):
        return {_text(key): _text(member) for key, member in value.items()}
    return [_text(item) for item in value] if isinstance(value, list) else value


@ANY_MACHINE
@given(VALUES)
def test_what_is_written_is_read_again_by_us_and_by_others(value: Any) -> None:
    assert decode(encode_object(value)) == value
    assert _text(cbor2.loads(encode(value))) == value


@ANY_MACHINE
@given(VALUES)
def test_what_others_write_is_read_whether_lengths_are_told_or_not(value: Any) -> None:
    assert decode(cbor2.dumps(value)) == value
    assert decode(cbor2.dumps(value, indefinite_containers=True)) == value


@ANY_MACHINE
@given(st.binary(max_size=40))
def test_bytes_are_read_or_refused_and_nothing_else_happens(data: bytes) -> None:
    with suppress(CborError):
        decode(data)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ({"a": "é"}, "a1416142c3a9"),
        (b"hello", "d64568656c6c6f"),
        (1.5, "f93e00"),
        (3.4028234663852886e38, "fa7f7fffff"),
        (1.1, "fb3ff199999999999a"),
        (-1, "20"),
        ([True, False, None], "83f5f4f6"),
    ],
)
def test_strings_are_byte_strings_and_numbers_are_as_short_as_can_be(value: Any, written: str) -> None:
    assert encode(value).hex() == written


@pytest.mark.parametrize(
    ("data", "value"),
    [
        ("d9d9f7d9d9f7a0", {}),
        ("d903e76161", "a"),
        ("d64568656c6c6f", "aGVsbG8="),
        ("d542fffe", "__4"),
        ("d742ff00", "ff00"),
        ("d68241616162", ["YQ==", "b"]),
        ("c074323031332d30332d32315432303a30343a30305a", "2013-03-21T20:04:00Z"),
        ("c11a5e0be100", "2020-01-01T00:00:00Z"),
        ("c1fb41d782f840100000", "2020-01-01T00:00:00.25Z"),
        ("41ff", "�"),
        ("f93c00", 1),
        ("d81c6161", "a"),
    ],
)
def test_tags_say_what_byte_strings_and_times_become(data: str, value: Any) -> None:
    assert decode(bytes.fromhex(data)) == value


def test_who_knows_the_types_gets_what_is_in_the_tag_of_a_time() -> None:
    assert decode(bytes.fromhex("c11a5e0be100"), typed=True) == 1577836800


REFUSALS = [
    ("", "EOF"),
    ("a1", "unexpected EOF"),
    ("7b7fffffffffffffff", "unexpected EOF"),
    ("9a7fffffff", "unexpected EOF"),
    ("0000", "cbor: 1 bytes of extraneous data starting at index 1"),
    ("1c", "cbor: invalid additional information 28 for type positive integer"),
    ("ff", 'cbor: unexpected "break" code'),
    ("bf6161ff", 'cbor: unexpected "break" code'),
    ("9fc6ff", 'cbor: unexpected "break" code'),
    ("bf6161c6ff", 'cbor: unexpected "break" code'),
    ("81" * 254 + "80", "cbor: exceeded max nested level 254"),
    ("a16161" * 254 + "a0", "cbor: exceeded max nested level 254"),
    ("f818", "cbor: invalid simple value 24 for type primitives"),
    ("7f4161ff", "cbor: wrong element type byte string for indefinite-length UTF-8 text string"),
    ("9b7fffffffffffffff", "cbor: exceeded max number of elements 2147483647 for CBOR array"),
    ("bb7fffffffffffffff", "cbor: exceeded max number of key-value pairs 2097152 for CBOR map"),
    ("81" * 255 + "00", "cbor: exceeded max nested level 254"),
    ("c249010000000000000000", "cbor: data item of cbor type tag is not accepted by protocol: bignum"),
    ("f97e00", "cbor: data item of cbor type primitives is not accepted by protocol: floating-point NaN"),
    ("f97c00", "cbor: data item of cbor type primitives is not accepted by protocol: floating-point infinity"),
    ("f7", "cbor: data item of cbor type primitives is not accepted by protocol: simple value 23 is not recognized"),
    ("61ff", "cbor: invalid UTF-8 string"),
    ("a2416101616102", 'cbor: found duplicate map key "a" at map element index 1'),
    ("a10102", "cbor: cannot unmarshal positive integer into Go value of type string"),
    (
        "1bffffffffffffffff",
        "cbor: cannot unmarshal positive integer into Go value of type int64 "
        "(18446744073709551615 overflows Go's int64)",
    ),
    (
        "c0637a7a7a",
        'cbor: cannot set zzz for time.Time: parsing time "zzz" as "2006-01-02T15:04:05Z07:00": '
        'cannot parse "zzz" as "2006"',
    ),
    (
        "c161 61".replace(" ", ""),
        "cbor: tag number 1 must be followed by integer or floating-point number, got UTF-8 text string",
    ),
]


@pytest.mark.parametrize(("data", "why"), REFUSALS, ids=[why[:40] for _, why in REFUSALS])
def test_what_has_no_place_in_json_or_means_two_things_is_refused(data: str, why: str) -> None:
    with pytest.raises(CborError) as refused:
        decode(bytes.fromhex(data))
    assert str(refused.value) == why


def test_a_body_is_shown_in_diagnostic_notation() -> None:
    assert diagnose(encode_object({"a": [1, None]})) == "55799({'a': [1, null]})"
    assert diagnose(cbor2.dumps({"a": "b"})) == '{"a": "b"}'
