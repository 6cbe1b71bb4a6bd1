"""Header compression: decoding what peers send, encoding what we answer and what we ask other servers (RFC 7541).

The decoder keeps the peer's dynamic table in step whatever happens: a field list over the limit is decoded to its end
and reported as None. The encoder uses no dynamic table, so that it has no state. Every field that the decoder
returns has a lower-case token as its name and no control characters in its value.
"""

from __future__ import annotations

import re
from typing import Final, TypeAlias

from pilothouse.apiserver.http import Headers
from pilothouse.apiserver.serving.http2 import huffman
from pilothouse.apiserver.serving.http2.frames import ConnectionFailure, ErrorCode
from pilothouse.apiserver.serving.http2.static_table import NAME_INDEX, STATIC_TABLE, STATUS_INDEX

Field: TypeAlias = tuple[bytes, bytes]

TABLE_SIZE: Final = 4096
"""The default of RFC 7541, and what we announce."""
FIELD_OVERHEAD: Final = 32

_NAME = re.compile(rb":?[!#$%&'*+\-.^_`|~0-9a-z]+").fullmatch
_BAD_VALUE = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]").search
_FIRST_DYNAMIC: Final = len(STATIC_TABLE)


def _broken(why: str) -> ConnectionFailure:
    return ConnectionFailure(ErrorCode.COMPRESSION_ERROR, why)


def read_integer(block: bytes, at: int, mask: int) -> tuple[int, int]:
    """The number whose prefix is block[at] & mask, and where it ends."""
    value = block[at] & mask
    at += 1
    if value < mask:
        return value, at
    for shift in (0, 7, 14, 21):
        if at >= len(block):
            break
        byte = block[at]
        at += 1
        value += (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise _broken("a number is cut off or too large")


def write_integer(value: int, mask: int, pattern: int) -> bytes:
    if value < mask:
        return bytes((pattern | value,))
    out = bytearray((pattern | mask,))
    value -= mask
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


class Decoder:
    """One connection's incoming field blocks."""

    __slots__ = ("_free", "_limit", "_safe_block", "_size", "_table")

    def __init__(self, max_list_size: int) -> None:
        self._limit = max_list_size
        # A byte of a block yields at most one whole table entry, so shorter blocks cannot pass the limit.
        self._safe_block = max_list_size // (TABLE_SIZE + FIELD_OVERHEAD)
        self._table: list[Field] = list(STATIC_TABLE)
        self._size = TABLE_SIZE
        self._free = TABLE_SIZE

    def decode(self, block: bytes) -> list[Field] | None:
        """The fields of a block, or None where they are larger than the limit."""
        fields: list[Field] = []
        at, end, table, used = 0, len(block), self._table, 0
        counted = end > self._safe_block
        while at < end:
            first = block[at]
            if first >= 0x80:
                index, at = (first & 0x7F, at + 1) if first != 0xFF else read_integer(block, at, 0x7F)
                if not 0 < index < len(table):
                    raise _broken("a field refers to an entry that is not in the table")
                field = table[index]
            elif first >= 0x40:
                field, at = self._literal(block, at, 0x3F)
                self._insert(field)
            elif first < 0x20:
                field, at = self._literal(block, at, 0x0F)
            else:
                at = self._resize(block, at)
                continue
            if counted:
                used += len(field[0]) + len(field[1]) + FIELD_OVERHEAD
                if used > self._limit:
                    fields.clear()
            fields.append(field)
        return None if used > self._limit else fields

    def _literal(self, block: bytes, at: int, mask: int) -> tuple[Field, int]:
        index, at = read_integer(block, at, mask)
        if index >= len(self._table):
            raise _broken("a name refers to an entry that is not in the table")
        if index:
            name = self._table[index][0]
        else:
            name, at = self._string(block, at)
            if not _NAME(name):
                raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR, "a field name is not a lower-case token")
        value, at = self._string(block, at)
        if _BAD_VALUE(value):
            raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR, "a field value has control characters")
        return (name, value), at

    def _string(self, block: bytes, at: int) -> tuple[bytes, int]:
        if at >= len(block):
            raise _broken("a string is missing")
        coded = block[at] >= 0x80
        length, at = read_integer(block, at, 0x7F)
        end = at + length
        if end > len(block):
            raise _broken("a string is cut off")
        if not coded:
            return block[at:end], end
        try:
            return huffman.decode(block[at:end]), end
        except huffman.HuffmanError as error:
            raise _broken(str(error)) from None

    def _insert(self, field: Field) -> None:
        self._free -= len(field[0]) + len(field[1]) + FIELD_OVERHEAD
        self._table.insert(_FIRST_DYNAMIC, field)
        if self._free < 0:
            self._evict()

    def _evict(self) -> None:
        """An entry larger than the whole table leaves it empty, as the RFC wants."""
        while self._free < 0:
            name, value = self._table.pop()
            self._free += len(name) + len(value) + FIELD_OVERHEAD

    def _resize(self, block: bytes, at: int) -> int:
        size, at = read_integer(block, at, 0x1F)
        if size > TABLE_SIZE:
            raise _broken("the table is made larger than announced")
        self._free += size - self._size
        self._size = size
        self._evict()
        return at


CONNECTION_FIELDS: Final = frozenset(
    {b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"}
)
"""Fields that speak of a connection: they mean nothing in HTTP/2 and must not be sent."""

_LENGTHS: Final = tuple(bytes((length,)) for length in range(127))


class _Names(dict[bytes, bytes]):
    """Field name → the start of a literal field with it; empty for names that must not be sent.

    Of the names that others made up, a few short ones are kept: a look-up that found something must cost nothing more.
    """

    def __missing__(self, name: bytes) -> bytes:
        start = _start(name.lower())
        if len(self) >= _MOST_NAMES:
            self.clear()
        if len(name) <= _LONGEST_NAME:
            self[name] = start
        return start


def _start(name: bytes) -> bytes:
    if name in CONNECTION_FIELDS:
        return b""
    if index := NAME_INDEX.get(name):
        return write_integer(index, 0x0F, 0)
    return b"\0" + write_integer(len(name), 0x7F, 0) + name


_MOST_NAMES: Final = 1024
_LONGEST_NAME: Final = 64
_NAMES: Final = _Names()


def encode_response(status: int, headers: Headers) -> bytes:
    """The field block of an answer."""
    index = STATUS_INDEX.get(status)
    return _encoded([bytes((0x80 | index,)) if index else b"\x08\x03%d" % status], headers)


def encode_request(method: bytes, target: bytes, authority: bytes, headers: Headers) -> bytes:
    """The field block of a request over TLS. Raises ValueError for values that no field can have."""
    if _BAD_VALUE(b"".join([value for _, value in headers])):
        raise ValueError("invalid header field value")
    out = [_METHODS.get(method) or b"\x02" + _string(method), _HTTPS]
    out += (b"\x01", _string(authority), b"\x04", _string(target))
    return _encoded(out, headers)


_METHODS: Final = {b"GET": b"\x82", b"POST": b"\x83"}
_HTTPS: Final = b"\x87"


def _string(value: bytes) -> bytes:
    return write_integer(len(value), 0x7F, 0) + value


def _encoded(out: list[bytes], headers: Headers) -> bytes:
    append, names = out.append, _NAMES
    for name, value in headers:
        start = names[name]
        if start:
            length = len(value)
            append(start)
            append(_LENGTHS[length] if length < 127 else write_integer(length, 0x7F, 0))
            append(value)
    return b"".join(out)
