"""Header compression: decoding what peers send, encoding what we answer and what we ask other servers (RFC 7541).

The decoder keeps the peer's dynamic table in step: a field list over the limit is decoded to its end and reported as
None. One that is far over it ends the connection, and so does a table that changes its size all the time. What came
once is not decoded twice, however small the parts are in which it comes. Every field that the decoder returns has a
lower-case token as its name and no control characters in its value. The encoder uses no dynamic table, so that it has
no state.
"""

from __future__ import annotations

import re
from typing import Final, TypeAlias

from pilothouse.apiserver.head_fields import check_fields, check_request
from pilothouse.apiserver.http import Headers
from pilothouse.apiserver.serving.http2 import huffman
from pilothouse.apiserver.serving.http2.frames import ConnectionFailure, ErrorCode
from pilothouse.apiserver.serving.http2.static_table import NAME_INDEX, STATIC_TABLE, STATUS_INDEX

Field: TypeAlias = tuple[bytes, bytes]

TABLE_SIZE: Final = 4096
"""The default of RFC 7541, and what we announce."""
FIELD_OVERHEAD: Final = 32
_RESIZES: Final = 2  # at the start of a block; RFC 7541, section 4.2
_LONG: Final = 4096  # coded bytes of a string

_NAME = re.compile(rb":?[!#$%&'*+\-.^_`|~0-9a-z]+").fullmatch
_BAD_VALUE = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]").search
_FIRST_DYNAMIC: Final = len(STATIC_TABLE)


def _broken(why: str) -> ConnectionFailure:
    return ConnectionFailure(ErrorCode.COMPRESSION_ERROR, why)


class CutOff(ConnectionFailure):
    """The block ends inside a field."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.COMPRESSION_ERROR, "a field is cut off")


def read_integer(block: bytes, at: int, mask: int) -> tuple[int, int]:
    """The number whose prefix is block[at] & mask, and where it ends. Raises CutOff."""
    value = block[at] & mask
    at += 1
    if value < mask:
        return value, at
    for shift in (0, 7, 14, 21):
        if at >= len(block):
            raise CutOff
        byte = block[at]
        at += 1
        value += (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise _broken("a number is too large")


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

    __slots__ = ("_begun", "_free", "_safe_block", "_size", "_table", "limit")

    def __init__(self, max_list_size: int) -> None:
        self.limit = max_list_size
        # A byte of a block yields at most one whole table entry, so shorter blocks cannot pass the limit.
        self._safe_block = max_list_size // (TABLE_SIZE + FIELD_OVERHEAD)
        self._table: list[Field] = list(STATIC_TABLE)
        self._size = TABLE_SIZE
        self._free = TABLE_SIZE
        self._begun: dict[int, huffman.LongString] = {}  # of the field that a part begins with, by where they stand

    def decode(self, block: bytes) -> list[Field] | None:
        """The fields of a block, or None where they are larger than the limit."""
        fields: list[Field] = []
        end, used = self.decode_part(block, fields, 0, counted=len(block) > self._safe_block)
        if end < len(block):
            raise CutOff
        return None if used > self.limit else fields

    def decode_part(self, block: bytes, fields: list[Field], used: int, *, counted: bool = True) -> tuple[int, int]:
        """Adds the fields of a part of a block, up to the one that is not all there yet.

        Returns where that begins (the next part must begin with it) and the size of the list if it is counted.
        """
        at, start, end, table, resizes = 0, 0, len(block), self._table, 0
        try:
            while at < end:
                start = at
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
                    resizes += 1
                    if fields or resizes > _RESIZES:
                        raise _broken("the table changes its size inside a block")
                    continue
                if counted:
                    used += len(field[0]) + len(field[1]) + FIELD_OVERHEAD
                    if used > self.limit:
                        self._check(used)
                        fields.clear()
                fields.append(field)
        except CutOff:
            if start:
                self._begun.clear()
            return start, used
        if self._begun:
            self._begun.clear()
        return end, used

    def _check(self, used: int) -> None:
        """A list that is a little too large is refused; nobody decodes one that is far too large."""
        if used > 2 * self.limit:
            raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR, "a field list is far too large")

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
            raise CutOff
        coded = block[at] >= 0x80
        length, at = read_integer(block, at, 0x7F)
        if length > self.limit:
            raise _broken("a string is too long")
        end = at + length
        try:
            if coded and length > _LONG:
                return self._long_string(block, at, end), end
            if end > len(block):
                raise CutOff
            return huffman.decode(block[at:end]) if coded else block[at:end], end
        except huffman.HuffmanError as error:
            raise _broken(str(error)) from None

    def _long_string(self, block: bytes, at: int, end: int) -> bytes:
        string = self._begun.setdefault(at, huffman.LongString())
        string.take(block[at + string.taken : end])
        if end > len(block):
            raise CutOff
        return string.whole()

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
    """The field block of an answer. Raises InvalidHead."""
    check_fields(headers)
    index = STATUS_INDEX.get(status)
    return _encoded([bytes((0x80 | index,)) if index else b"\x08\x03%d" % status], headers)


def encode_request(method: bytes, target: bytes, authority: bytes, headers: Headers) -> bytes:
    """The field block of a request over TLS. Raises InvalidHead."""
    check_request(method, target, [(b"host", authority), *headers])
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
