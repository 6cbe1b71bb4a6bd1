"""Wire format of CBOR: heads of data items, upstream's type names, and the check for well-formedness.

The check runs only on rejected bytes; its purpose is upstream's error message.
"""

from __future__ import annotations

from math import isinf, isnan
from struct import pack, unpack

from pilothouse.machinery.checkpoints import checkpoint

UNSIGNED, NEGATIVE, BYTES, TEXT, ARRAY, MAP, TAG, SIMPLE = range(8)
NAMES = (
    "positive integer",
    "negative integer",
    "byte string",
    "UTF-8 text string",
    "array",
    "map",
    "tag",
    "primitives",
)

SELF_DESCRIBED = b"\xd9\xd9\xf7"
"""Head of the self-described tag (55799), which marks objects as CBOR."""
SELF_DESCRIBED_TAG = 55799
BREAK = 0xFF
_FIRST_TAG = 0xC0
INDEFINITE = 31
"""Additional information of indefinite-length items."""
FALSE, TRUE, NULL, UNDEFINED = 20, 21, 22, 23
FLOATS = {25: ">e", 26: ">f", 27: ">d"}
BASE64URL, BASE64, BASE16 = 21, 22, 23
"""Tags with the expected text encoding of byte strings."""

MAX_DEPTH = 254
"""Nesting limit, equal to the limit of JSON bodies."""
INT64 = 1 << 63

_ITEMS_PER_CHECKPOINT = 32
_ARGUMENTS = (">BB", ">BH", ">BI", ">BQ")


def head(major: int, argument: int) -> bytes:
    """Return the head of a data item, with the shortest argument."""
    if argument < 24:
        return bytes((major << 5 | argument,))
    size = 0 if argument < 1 << 8 else 1 if argument < 1 << 16 else 2 if argument < 1 << 32 else 3
    return pack(_ARGUMENTS[size], major << 5 | 24 + size, argument)


_MAX_ARRAY, _MAX_MAP, _MAX_INT = 2**31 - 1, 2**21, 2**63
_UNEXPECTED_END = "unexpected EOF"
_UNEXPECTED_BREAK = 'cbor: unexpected "break" code'


class CborError(ValueError):
    """Undecodable bytes; the message is upstream's."""


class MalformedCbor(CborError):
    """Malformed bytes, or bytes with constructs that upstream never accepts; no part of the content is usable."""


def check(data: bytes) -> None:
    """Raise MalformedCbor unless the bytes are exactly one well-formed data item."""
    if not data:
        raise MalformedCbor("EOF")
    end = end_of_item(data, 0)
    if end < len(data):
        raise MalformedCbor(f"cbor: {len(data) - end} bytes of extraneous data starting at index {end}")


def end_of_item(data: bytes, at: int) -> int:
    """Return the index after the data item. Raises MalformedCbor."""
    size = len(data)
    outer: list[tuple[int, int]] = []
    kind, left = TAG, 1  # the innermost open collection, and the items left in it: negative until a break
    while True:
        if not left % _ITEMS_PER_CHECKPOINT:
            checkpoint()
        if left < 0 and _is_break(data, at):
            if kind == MAP and left % 2 == 0:
                raise MalformedCbor(_UNEXPECTED_BREAK)
            at += 1
            kind, left = outer.pop()
        else:
            first = data[at] if at < size else BREAK
            if first < _FIRST_TAG and first & 31 < 24:
                major, info, argument, at = first >> 5, first & 31, first & 31, at + 1
            else:
                major, info, argument, at = _head(data, at)
            if major == TAG:
                at = _end_of_tags(data, at, argument)
                major, info, argument, at = _head(data, at)
            if ARRAY <= major <= MAP:
                count = _count_of_items(major, info, argument, len(outer) + 1)
                if count:
                    checkpoint()
                    outer.append((kind, left))
                    kind, left = major, count
                    continue
            elif BYTES <= major <= TEXT:
                is_whole = info != INDEFINITE
                at = _behind(data, at, argument, major) if is_whole else _end_of_chunks(data, at, major)
        left -= 1
        while left == 0:
            if not outer:
                return at
            kind, left = outer.pop()
            left -= 1


def _end_of_tags(data: bytes, at: int, tag: int) -> int:
    """Return the index of the content of nested tags."""
    while True:
        checkpoint()
        if at == len(data):
            raise MalformedCbor(_UNEXPECTED_END)
        if tag in (2, 3):
            raise _not_accepted(TAG, "bignum")
        if data[at] >> 5 != TAG:
            return at
        _, _, tag, at = _head(data, at)


def _count_of_items(major: int, info: int, count: int, depth: int) -> int:
    """Return the number of items in a collection, keys included; -1 for an indefinite length."""
    if depth > MAX_DEPTH:
        raise MalformedCbor(f"cbor: exceeded max nested level {MAX_DEPTH}")
    if info == INDEFINITE:
        return -1
    if count >= _MAX_INT:
        raise MalformedCbor(f"cbor: {NAMES[major]} length {count} is too large, it would cause integer overflow")
    if major == ARRAY and count > _MAX_ARRAY:
        raise MalformedCbor(f"cbor: exceeded max number of elements {_MAX_ARRAY} for CBOR array")
    if major == MAP and count > _MAX_MAP:
        raise MalformedCbor(f"cbor: exceeded max number of key-value pairs {_MAX_MAP} for CBOR map")
    return count * 2 if major == MAP else count


def _end_of_chunks(data: bytes, at: int, major: int) -> int:
    while not _is_break(data, at):
        checkpoint()
        kind, info = data[at] >> 5, data[at] & 31
        if kind != major:
            raise MalformedCbor(f"cbor: wrong element type {NAMES[kind]} for indefinite-length {NAMES[major]}")
        if info == INDEFINITE:
            raise MalformedCbor(f"cbor: indefinite-length {NAMES[major]} chunk is not definite-length")
        _, _, length, at = _head(data, at)
        at = _behind(data, at, length, major)
    return at + 1


def _is_break(data: bytes, at: int) -> bool:
    if at == len(data):
        raise MalformedCbor(_UNEXPECTED_END)
    return data[at] == BREAK


def _behind(data: bytes, at: int, length: int, major: int) -> int:
    if length >= _MAX_INT:
        raise MalformedCbor(f"cbor: {NAMES[major]} length {length} is too large, causing integer overflow")
    if length > len(data) - at:
        raise MalformedCbor(_UNEXPECTED_END)
    return at + length


def _head(data: bytes, at: int) -> tuple[int, int, int, int]:
    """Return (major type, additional information, argument, index after the head)."""
    if at == len(data):
        raise MalformedCbor(_UNEXPECTED_END)
    major, info = data[at] >> 5, data[at] & 31
    at += 1
    if info < 24:
        return major, info, info, at
    if info > 27:
        if info == INDEFINITE and major == SIMPLE:
            raise MalformedCbor(_UNEXPECTED_BREAK)
        if info != INDEFINITE or major in (UNSIGNED, NEGATIVE, TAG):
            raise MalformedCbor(f"cbor: invalid additional information {info} for type {NAMES[major]}")
        return major, info, 0, at
    end = at + (1 << (info - 24))
    if end > len(data):
        raise MalformedCbor(_UNEXPECTED_END)
    argument = int.from_bytes(data[at:end], "big")
    if major == SIMPLE:
        _check_simple(info, argument, data[at:end])
    return major, info, argument, end


def _check_simple(info: int, argument: int, packed: bytes) -> None:
    if info not in FLOATS:
        if argument < 32:
            raise MalformedCbor(f"cbor: invalid simple value {argument} for type {NAMES[SIMPLE]}")
        return
    number = unpack(FLOATS[info], packed)[0]
    if isnan(number) or isinf(number):
        raise _not_accepted(SIMPLE, "floating-point NaN" if isnan(number) else "floating-point infinity")


def _not_accepted(major: int, description: str) -> MalformedCbor:
    return MalformedCbor(f"cbor: data item of cbor type {NAMES[major]} is not accepted by protocol: {description}")


def expect_tag_content(tag: int, content: int) -> None:
    """Raise CborError if an item that begins with byte `content` is invalid inside a time tag."""
    major = content >> 5
    if tag == 0 and major != TEXT:
        raise CborError(f"cbor: tag number 0 must be followed by text string, got {NAMES[major]}")
    if tag == 1 and major not in (UNSIGNED, NEGATIVE) and not 0xF9 <= content <= 0xFB:
        raise CborError(f"cbor: tag number 1 must be followed by integer or floating-point number, got {NAMES[major]}")
