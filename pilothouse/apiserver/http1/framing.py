"""Where a message ends in what was received.

The parser is never given bytes beyond that end: what comes after may be a head that is too long for it, or no HTTP at
all, and must not be lost. Heads and chunked bodies end with an empty line, other bodies when they are as long as was
declared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

HEAD_END: Final = b"\r\n\r\n"
_OVERHEAD: Final = 19
"""Bytes that a byte of a body may take when it comes in chunks of one byte; net/http allows as many."""
_SPARE: Final = 16 << 10


class BadMessage(ValueError):
    """The message is malformed. A request that is, is answered with this status."""

    status = 400


class UnsupportedTransferEncoding(BadMessage):
    """The body is coded otherwise than in chunks. Who reads on may take its end for another's."""

    status = 501


class MessageTooLarge(BadMessage):
    """The head is too long, or reading it would take too long."""

    status = 431


class Framing:
    __slots__ = ("_left", "_tail", "_taken")

    def __init__(self, length: int | None = None) -> None:
        """Begin a body of this length; without one, a head or a chunked body."""
        self._left = length
        self._tail = b""  # the last bytes before what comes next: an end may be cut in two
        self._taken = 0  # of what ends with an empty line

    def next_end(self, data: bytes, at: int) -> int:
        """Return the position where the message may end, or the end of the data. Bytes before it are taken."""
        left = self._left
        if left is None:
            end = self._empty_line(data, at)
            self._taken += end - at
            return end
        size = min(left, len(data) - at)
        self._left = left - size
        return at + size

    def is_mostly_overhead(self, body_size: int) -> bool:
        """Whether what was taken is far more than the body that it holds, as with long chunk extensions."""
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
    """As net/http does: there is one Transfer-Encoding, and it is chunked. Raises BadMessage."""
    if http_version == b"1.0":
        raise BadMessage("HTTP/1.0 knows no Transfer-Encoding")
    if len(values) != 1 or values[0].lower() != b"chunked":
        raise UnsupportedTransferEncoding("unsupported transfer encoding")
