"""HPACK header compression (RFC 7541): tables, integers, decoder and encoder.

The decoder keeps the dynamic table in sync: a field list over the limit is decoded to its end and reported as None. A
list far over the limit ends the connection, as do excessive table resizes. No byte is decoded twice, however small the
fragments. Decoded fields have a lower-case token as name and no control characters in the value. The encoder is
stateless: it uses no dynamic table.
"""

from __future__ import annotations

import re
from typing import Final

from pilothouse.apiserver.head_fields import FIELD_OVERHEAD, check_fields, check_request
from pilothouse.apiserver.http import Headers
from pilothouse.apiserver.http2 import huffman
from pilothouse.apiserver.http2.frames import CONNECTION_FIELDS, ConnectionFailure, ErrorCode, Field

# The static table of appendix A. Index 0 is never used.
_PSEUDO: Final = (
    (b":authority", b""),
    (b":method", b"GET"),
    (b":method", b"POST"),
    (b":path", b"/"),
    (b":path", b"/index.html"),
    (b":scheme", b"http"),
    (b":scheme", b"https"),
    (b":status", b"200"),
    (b":status", b"204"),
    (b":status", b"206"),
    (b":status", b"304"),
    (b":status", b"400"),
    (b":status", b"404"),
    (b":status", b"500"),
)

_PLAIN_NAMES: Final = b"""
    accept-charset accept-encoding accept-language accept-ranges accept access-control-allow-origin age allow
    authorization cache-control content-disposition content-encoding content-language content-length content-location
    content-range content-type cookie date etag expect expires from host if-match if-modified-since if-none-match
    if-range if-unmodified-since last-modified link location max-forwards proxy-authenticate proxy-authorization range
    referer refresh retry-after server set-cookie strict-transport-security transfer-encoding user-agent vary via
    www-authenticate
""".split()

_VALUES: Final = {b"accept-encoding": b"gzip, deflate"}

STATIC_TABLE: Final[tuple[tuple[bytes, bytes], ...]] = (
    (b"", b""),
    *_PSEUDO,
    *((name, _VALUES.get(name, b"")) for name in _PLAIN_NAMES),
)

NAME_INDEX: Final = {name: len(_PSEUDO) + place for place, name in enumerate(_PLAIN_NAMES, 1)}

STATUS_INDEX: Final = {int(value): index for index, (name, value) in enumerate(STATIC_TABLE) if name == b":status"}


class CutOff(ConnectionFailure):
    """The block ends inside a field."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.COMPRESSION_ERROR, "a field is cut off")


def read_integer(block: bytes, at: int, mask: int) -> tuple[int, int]:
    """Return the number with prefix block[at] & mask, and its end. Raises CutOff."""
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
    raise ConnectionFailure(ErrorCode.COMPRESSION_ERROR, "a number is too large")


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


TABLE_SIZE: Final = 4096
"""The default of RFC 7541, and the announced size."""
_RESIZES: Final = 2  # at the start of a block; RFC 7541, section 4.2
_LONG: Final = 4096  # coded bytes of a string

_NAME = re.compile(rb":?[!#$%&'*+\-.^_`|~0-9a-z]+").fullmatch
_BAD_VALUE = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]").search
_FIRST_DYNAMIC: Final = len(STATIC_TABLE)


def _broken(reason: str) -> ConnectionFailure:
    return ConnectionFailure(ErrorCode.COMPRESSION_ERROR, reason)


class Decoder:
    """Decodes the incoming field blocks of a connection."""

    __slots__ = ("_begun", "_free", "_safe_block", "_size", "_table", "limit")

    def __init__(self, max_list_size: int) -> None:
        self.limit = max_list_size
        # A byte yields at most one full table entry, so shorter blocks cannot exceed the limit.
        self._safe_block = max_list_size // (TABLE_SIZE + FIELD_OVERHEAD)
        self._table: list[Field] = list(STATIC_TABLE)
        self._size = TABLE_SIZE
        self._free = TABLE_SIZE
        self._begun: dict[int, huffman.LongString] = {}  # offset → partially decoded strings of the first field

    def decode(self, block: bytes) -> list[Field] | None:
        """Return the fields of a block, or None beyond the limit."""
        fields: list[Field] = []
        end, used = self.decode_part(block, fields, 0, counted=len(block) > self._safe_block)
        if end < len(block):
            raise CutOff
        return None if used > self.limit else fields

    def decode_part(self, block: bytes, fields: list[Field], used: int, *, counted: bool = True) -> tuple[int, int]:
        """Add the fields of a fragment, up to the first incomplete field.

        Returns the start of the incomplete field, where the next fragment must begin, and the list size if counted.
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
                    self._free -= len(field[0]) + len(field[1]) + FIELD_OVERHEAD
                    self._table.insert(_FIRST_DYNAMIC, field)
                    if self._free < 0:
                        self._evict()
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
                        if used > 2 * self.limit:
                            raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR, "a field list is far too large")
                        fields.clear()
                fields.append(field)
        except CutOff:
            if start:
                self._begun.clear()
            return start, used
        if self._begun:
            self._begun.clear()
        return end, used

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
                string = self._begun.setdefault(at, huffman.LongString())
                string.take(block[at + string.taken : end])
                if end > len(block):
                    raise CutOff
                return string.whole(), end
            if end > len(block):
                raise CutOff
            return huffman.decode(block[at:end]) if coded else block[at:end], end
        except huffman.HuffmanError as error:
            raise _broken(str(error)) from None

    def _evict(self) -> None:
        """Evict entries. An entry larger than the table empties the table, as RFC 7541 requires."""
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


_LENGTHS: Final = tuple(bytes((length,)) for length in range(127))


class _Names(dict[bytes, bytes]):
    """Field name → start of a literal field; empty for forbidden names.

    Only a few short custom names are cached, so that a hit costs a plain lookup.
    """

    def __missing__(self, name: bytes) -> bytes:
        start = _start(name.lower())
        if len(name) <= _LONGEST_NAME:
            if len(self) >= _MOST_NAMES:
                self.clear()
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
    """Encode the field block of a response. Raises InvalidHead."""
    check_fields(headers)
    index = STATUS_INDEX.get(status)
    return _encoded([bytes((0x80 | index,)) if index else b"\x08\x03%d" % status], headers)


def encode_request(method: bytes, target: bytes, authority: bytes, headers: Headers) -> bytes:
    """Encode the field block of a request over TLS. Raises InvalidHead."""
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
