"""Message boundaries in received data.

The parser never gets bytes beyond the end of a message: later bytes may be an oversized head or not HTTP, and must not
be lost. Heads and chunked bodies end with an empty line, other bodies at the declared length.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

HEAD_END: Final = b"\r\n\r\n"
_OVERHEAD: Final = 19
"""Maximum overhead per body byte for chunks of one byte; net/http's limit."""
_SPARE: Final = 16 << 10


class BadMessage(ValueError):
    """A malformed message; requests are answered with this status."""

    status = 400


class UnsupportedTransferEncoding(BadMessage):
    """A transfer coding other than chunked. Reading on would risk request smuggling."""

    status = 501


class MessageTooLarge(BadMessage):
    """The head is too long, or too expensive to parse."""

    status = 431


class Framing:
    __slots__ = ("_left", "_tail", "_taken")

    def __init__(self, length: int | None = None) -> None:
        """Start a body of this length; None = a head or a chunked body."""
        self._left = length
        self._tail = b""  # last bytes of the previous data, as the end marker may be split
        self._taken = 0  # bytes of a part that ends with an empty line

    def next_end(self, data: bytes, at: int) -> int:
        """Return the next possible end of the message, or the end of the data. Bytes before are consumed."""
        left = self._left
        if left is None:
            end = self._empty_line(data, at)
            self._taken += end - at
            return end
        size = min(left, len(data) - at)
        self._left = left - size
        return at + size

    def is_mostly_overhead(self, body_size: int) -> bool:
        """Return whether the consumed bytes far exceed the body, such as with long chunk extensions."""
        return self._taken - _OVERHEAD * body_size > _SPARE

    def _empty_line(self, data: bytes, at: int) -> int:
        tail, self._tail = self._tail, b""
        if tail and (found := (tail + data[at : at + 3]).find(HEAD_END)) >= 0:
            return at + found + len(HEAD_END) - len(tail)
        if (found := data.find(HEAD_END, at)) >= 0:
            return found + len(HEAD_END)
        self._tail = (tail + data[max(at, len(data) - 3) :])[-3:]
        return len(data)


def check_codings(values: Sequence[bytes], http_version: bytes) -> None:
    """Require a single Transfer-Encoding, chunked, like net/http. Raises BadMessage."""
    if http_version == b"1.0":
        raise BadMessage("HTTP/1.0 knows no Transfer-Encoding")
    if len(values) != 1 or values[0].lower() != b"chunked":
        raise UnsupportedTransferEncoding("unsupported transfer encoding")
