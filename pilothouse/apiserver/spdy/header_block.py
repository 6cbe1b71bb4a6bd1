"""SPDY header blocks: name/value lists, compressed with the shared history of the connection.

Each endpoint has a compressor for sending and a decompressor for receiving. Every block must pass through in order,
even if its headers are ignored.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from struct import Struct
from typing import Final, TypeAlias

StreamHeaders: TypeAlias = Mapping[str, tuple[str, ...]]
"""Lower-case name → values."""

MAX_BLOCK: Final = 64 * 1024
"""Maximum decompressed size of a header block."""
_MOST_HEADERS: Final = 1000
_LONG: Final = Struct(">I")
_SEPARATOR: Final = "\0"
_WINDOW_BITS: Final = 11
"""Sufficient for the dictionary; the default would take 256 KiB per idle connection."""


class BadHeaderBlock(Exception):
    """An undecodable or oversized header block; all later blocks are undecodable as well."""


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
        """Decompress a block to at most MAX_BLOCK bytes. Raises BadHeaderBlock."""
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
    """Return the text at the offset, and its end."""
    begin = place + _LONG.size
    if begin > len(plain):
        raise BadHeaderBlock("it ends too early")
    end = begin + _LONG.unpack_from(plain, place)[0]
    if end > len(plain):
        raise BadHeaderBlock("it ends too early")
    return plain[begin:end].decode("utf-8", "replace"), end


_WORDS: Final = (
    "options|head|post|put|delete|trace|accept|accept-charset|accept-encoding|accept-language|"
    "accept-ranges|age|allow|authorization|cache-control|connection|content-base|content-encoding|"
    "content-language|content-length|content-location|content-md5|content-range|content-type|date|etag|"
    "expect|expires|from|host|if-match|if-modified-since|if-none-match|if-range|if-unmodified-since|"
    "last-modified|location|max-forwards|pragma|proxy-authenticate|proxy-authorization|range|referer|"
    "retry-after|server|te|trailer|transfer-encoding|upgrade|user-agent|vary|via|warning|www-authenticate|"
    "method|get|status|200 OK|version|HTTP/1.1|url|public|set-cookie|keep-alive|origin"
)
"""Each word is preceded by its length in the dictionary."""
_STATUSES: Final = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized"
    "403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
)
_VALUES: Final = (
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,"
    "text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)

DICTIONARY: Final = (
    b"".join(len(word).to_bytes(4, "big") + word.encode() for word in _WORDS.split("|"))
    + (_STATUSES + _VALUES).encode()
)
