"""HPACK decoder.

The decoder keeps the dynamic table in sync: a field list over the limit is decoded to its end and reported as None. A
list far over the limit ends the connection, as do excessive table resizes. No byte is decoded twice, however small the
fragments. Decoded fields have a lower-case token as name and no control characters in the value.
"""

from __future__ import annotations

import re
from typing import Final

from pilothouse.apiserver.head_fields import FIELD_OVERHEAD
from pilothouse.apiserver.http2.fields import Field
from pilothouse.apiserver.http2.frames import ConnectionFailure, ErrorCode
from pilothouse.apiserver.http2.hpack import huffman
from pilothouse.apiserver.http2.hpack.integers import CutOff, read_integer
from pilothouse.apiserver.http2.hpack.static_table import STATIC_TABLE

TABLE_SIZE: Final = 4096
"""The default of RFC 7541, and the announced size."""
_RESIZES: Final = 2  # at the start of a block; RFC 7541, section 4.2
_LONG: Final = 4096  # coded bytes of a string

_NAME = re.compile(rb":?[!#$%&'*+\-.^_`|~0-9a-z]+").fullmatch
_BAD_VALUE = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]").search
_FIRST_DYNAMIC: Final = len(STATIC_TABLE)


def _broken(why: str) -> ConnectionFailure:
    return ConnectionFailure(ErrorCode.COMPRESSION_ERROR, why)


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
        """Raise for a list far over the limit; slightly oversized lists are rejected later."""
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
