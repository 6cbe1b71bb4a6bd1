"""Headers as SPDY sends them: a list of names and values, compressed with all that the connection has sent before.

Each end has one compressor for what it sends and one decompressor for what it gets; every block goes through them, in
order, wanted or not.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from struct import Struct
from typing import Final, TypeAlias

from pilothouse.apiserver.spdy.dictionary import DICTIONARY

StreamHeaders: TypeAlias = Mapping[str, tuple[str, ...]]
"""The values of each header, by names in lower case."""

MAX_BLOCK: Final = 64 * 1024
"""Bytes of headers, when they are not compressed any more."""
_MOST_HEADERS: Final = 1000
_LONG: Final = Struct(">I")
_SEPARATOR: Final = "\0"
_WINDOW_BITS: Final = 11
"""Enough for the dictionary. The compressor of an idle connection would take a quarter of a megabyte otherwise."""


class BadHeaderBlock(Exception):
    """Headers that cannot be read, or are more than anybody needs. Nothing that follows can be read, either."""


class HeaderCompressor:
    def __init__(self) -> None:
        self._zlib = zlib.compressobj(9, zlib.DEFLATED, _WINDOW_BITS, 1, zlib.Z_DEFAULT_STRATEGY, DICTIONARY)

    def compress(self, headers: StreamHeaders) -> bytes:
        parts = [_LONG.pack(len(headers))]
        for name, values in headers.items():
            for text in (name.lower(), _SEPARATOR.join(values)):
                encoded = text.encode()
                parts += (_LONG.pack(len(encoded)), encoded)
        return self._zlib.compress(b"".join(parts)) + self._zlib.flush(zlib.Z_SYNC_FLUSH)


class HeaderDecompressor:
    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(zdict=DICTIONARY)

    def decompress(self, block: bytes) -> StreamHeaders:
        """Raises BadHeaderBlock. However well the block is compressed, no more than MAX_BLOCK is made of it."""
        try:
            plain = self._zlib.decompress(block, MAX_BLOCK + 1)
        except zlib.error as error:
            raise BadHeaderBlock(str(error)) from None
        if len(plain) > MAX_BLOCK or self._zlib.unconsumed_tail:
            raise BadHeaderBlock("too long")
        return _read(plain)


def _read(plain: bytes) -> StreamHeaders:
    if len(plain) < _LONG.size:
        raise BadHeaderBlock("it ends too early")
    (count,) = _LONG.unpack_from(plain)
    if count > _MOST_HEADERS:
        raise BadHeaderBlock(f"{count} headers")
    found: dict[str, tuple[str, ...]] = {}
    place = _LONG.size
    for _ in range(count):
        name, place = _text(plain, place)
        value, place = _text(plain, place)
        if name != name.lower() or name in found:
            raise BadHeaderBlock(f"the header {name!r} is not in lower case, or is there twice")
        found[name] = tuple(value.split(_SEPARATOR))
    return found


def _text(plain: bytes, place: int) -> tuple[str, int]:
    """Return the text at the place, and where it ends."""
    begin = place + _LONG.size
    if begin > len(plain):
        raise BadHeaderBlock("it ends too early")
    end = begin + _LONG.unpack_from(plain, place)[0]
    if end > len(plain):
        raise BadHeaderBlock("it ends too early")
    return plain[begin:end].decode("utf-8", "replace"), end
