"""HTTP/1.1 parser in Python, the fallback without zttp.

Accepts and rejects the same messages as zttp, with the same texts: tests/apiserver/http1 compares both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Final, Protocol

from pilothouse.apiserver.http import Headers
from pilothouse.apiserver.http1.framing import (
    HEAD_END,
    BadMessage,
    Framing,
    MessageTooLarge,
    body_length,
    is_persistent,
    parse_field,
    parse_request,
    parse_response,
    refuse_bare_line_ends,
    tokens,
)
from pilothouse.apiserver.http1.parser import (
    END,
    Mark,
    RequestEvent,
    RequestHead,
    ResponseEvent,
    ResponseHead,
    UnsendableRequest,
)

_CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]{1,16})(?:;[\t -~\x80-\xff]*)?\r\n").fullmatch
_LONGEST_LINE: Final = 16 << 10
_MOST_TRAILERS: Final = 100
_NOT_IN_TRAILERS: Final = frozenset(
    b"host content-length transfer-encoding content-encoding content-type content-range trailer te connection "
    b"upgrade".split()
)
_LONGEST_RESPONSE_HEAD: Final = 64 << 10
_BODILESS: Final = frozenset({204, 304})
_SWITCHING: Final = 101


class _Body(Protocol):
    def receive(self, data: bytes) -> Iterator[bytes | Mark]:
        """Yield the pieces of the body, then END. Bytes after the end are dropped."""

    def close(self) -> None:
        """Handle the end of the connection. Raises BadMessage if the body is incomplete."""


class _SizedBody:
    def __init__(self, size: int) -> None:
        self._left = size

    def receive(self, data: bytes) -> Iterator[bytes | Mark]:
        piece = data[: self._left]
        self._left -= len(piece)
        if piece:
            yield piece
        if not self._left:
            yield END

    def close(self) -> None:
        raise BadMessage("unexpected end of data")


class _BodyUntilClose:
    def receive(self, data: bytes) -> Iterator[bytes | Mark]:
        yield data

    def close(self) -> None:
        """Accept the end of the connection as the end of the body."""


class _Expected(Enum):
    SIZE = "size"
    DATA = "data"
    DATA_END = "data end"
    TRAILERS = "trailers"


class _ChunkedBody:
    def __init__(self) -> None:
        self._expected = _Expected.SIZE
        self._left = 0  # remaining bytes of the chunk
        self._line = bytearray()  # an incomplete line
        self._trailers = 0

    def receive(self, data: bytes) -> Iterator[bytes | Mark]:
        at, size = 0, len(data)
        while at < size:
            if self._expected is _Expected.DATA:
                piece = data[at : at + self._left]
                at += len(piece)
                self._left -= len(piece)
                if not self._left:
                    self._expected = _Expected.DATA_END
                yield piece
                continue
            end = data.find(b"\n", at) + 1 or size
            self._line += data[at:end]
            at = end
            is_wrong = self._expected is _Expected.DATA_END and not b"\r\n".startswith(self._line)
            if is_wrong or len(self._line) >= _LONGEST_LINE:
                raise BadMessage("malformed chunked encoding")
            if self._line.endswith(b"\n"):
                line = bytes(self._line)
                self._line.clear()
                if self._is_end(line):
                    yield END
                    return

    def _is_end(self, line: bytes) -> bool:
        """Handle a complete line. Returns whether the line was the last."""
        if self._expected is _Expected.TRAILERS:
            if not line.endswith(b"\r\n"):
                raise BadMessage("malformed chunked encoding")
            if line == b"\r\n":
                return True
            self._trailers += 1
            if self._trailers > _MOST_TRAILERS:
                raise MessageTooLarge("message exceeded configured size limit")
            if parse_field(line[:-2])[0] in _NOT_IN_TRAILERS:
                raise BadMessage("malformed header field")
            return False
        if self._expected is _Expected.DATA_END:
            self._expected = _Expected.SIZE
            return False
        found = _CHUNK_LINE(line)
        if found is None:
            raise BadMessage("malformed chunked encoding")
        self._left = int(found[1], 16)
        self._expected = _Expected.DATA if self._left else _Expected.TRAILERS
        return False

    def close(self) -> None:
        raise BadMessage("unexpected end of data")


class PythonRequestParser:
    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._head = bytearray()
        self._body: _Body | None = None  # None while reading a head
        self._headers: Headers = []

    def receive(self, data: bytes) -> Iterable[RequestEvent]:
        if self._body is not None:
            return self._body.receive(data)
        before = len(self._head)
        self._head += data
        if len(self._head) > self._most_bytes + len(HEAD_END):
            raise MessageTooLarge("message exceeded configured size limit")
        if not self._head.endswith(HEAD_END):
            refuse_bare_line_ends(self._head, before)
            return ()
        head = bytes(self._head)
        self._head.clear()
        return (self._begin(head),)

    def _begin(self, head: bytes) -> RequestHead:
        """Raises BadMessage."""
        parsed = parse_request(head, self._most_bytes)
        length = None if parsed.is_chunked else body_length(parsed.headers)
        self._headers = parsed.headers
        self._body = _ChunkedBody() if parsed.is_chunked else _SizedBody(length or 0)
        return RequestHead(
            parsed.method.decode(),
            parsed.target,
            parsed.headers,
            "1.0" if parsed.version == b"1.0" else "1.1",
            Framing(length) if parsed.is_chunked or length else None,
            is_persistent(parsed.headers, parsed.version) and not parsed.is_ambiguous,
            b"100-continue" in tokens(parsed.headers, b"expect"),
        )

    def next_request(self) -> None:
        self._body = None

    def asks_upgrade(self) -> bool:
        is_named = any(name == b"upgrade" and value for name, value in self._headers)
        return is_named and b"upgrade" in tokens(self._headers, b"connection")


class PythonResponseParser:
    def __init__(self) -> None:
        self._head = bytearray()
        self._body: _Body | None = None  # None while reading a head
        self._ended = True
        self._is_chunked = False  # of the request's body
        self._method = b""
        self._keeps_open = True

    def request(self, method: bytes, target: bytes, headers: Headers) -> bytes:
        codings = [value.lower() for name, value in headers if name == b"transfer-encoding"]
        lengths = [value for name, value in headers if name == b"content-length"]
        if len(codings) + len(lengths) > 1 or codings not in ([], [b"chunked"]) or not all(map(bytes.isdigit, lengths)):
            raise UnsendableRequest("invalid field: two opinions about the length of the body, or none that is known")
        self._method, self._is_chunked = method, bool(codings)
        self._body, self._ended = None, False
        fields = b"".join(b"%b: %b\r\n" % field for field in headers)
        return b"%b %b HTTP/1.1\r\n%b\r\n" % (method, target, fields)

    def data(self, data: bytes) -> bytes:
        return b"%x\r\n%b\r\n" % (len(data), data) if self._is_chunked and data else data

    def end(self) -> bytes:
        return b"0\r\n\r\n" if self._is_chunked else b""

    def receive(self, data: bytes) -> Iterator[ResponseEvent]:
        for event in self._read(data) if data else self._close():
            self._ended = event is END
            yield event

    def _read(self, data: bytes) -> Iterator[ResponseEvent]:
        while data and not self._ended:
            if self._body is not None:
                yield from self._body.receive(data)
                return
            head, data = self._collect(data)
            if head:
                yield from self._begin(head)

    def _collect(self, data: bytes) -> tuple[bytes, bytes]:
        """Return a complete head or empty bytes, and the remaining data. Raises BadMessage."""
        before = len(self._head)
        self._head += data
        found = self._head.find(HEAD_END, max(before - 3, 0))
        if (len(self._head) if found < 0 else found) > _LONGEST_RESPONSE_HEAD:
            raise MessageTooLarge("message exceeded configured size limit")
        if found < 0:
            refuse_bare_line_ends(self._head, before)
            return b"", b""
        end = found + len(HEAD_END)
        head, rest = bytes(self._head[:end]), bytes(self._head[end:])
        self._head.clear()
        return head, rest

    def _begin(self, head: bytes) -> Iterator[ResponseEvent]:
        """Raises BadMessage."""
        parsed = parse_response(head)
        codings, length = list(tokens(parsed.headers, b"transfer-encoding")), body_length(parsed.headers)
        is_bodiless = parsed.status < 200 or parsed.status in _BODILESS or self._method in (b"HEAD", b"CONNECT")
        if codings and (length is not None or not (is_bodiless or codings[-1] == b"chunked")):
            raise BadMessage("ambiguous or conflicting message framing")
        yield ResponseHead(parsed.status, parsed.headers)
        if parsed.status < 200 and parsed.status != _SWITCHING:
            return  # informational; the final response follows
        self._keeps_open = is_persistent(parsed.headers, parsed.version)
        if is_bodiless or (not codings and length == 0):
            yield END
        elif codings:
            self._body = _ChunkedBody()
        elif length is not None:
            self._body = _SizedBody(length)
        else:
            self._body, self._keeps_open = _BodyUntilClose(), False

    def _close(self) -> Iterator[ResponseEvent]:
        if self._ended or (self._body is None and not self._head):
            return
        if self._body is None:
            raise BadMessage("unexpected end of data")
        self._body.close()
        yield END

    def should_close(self) -> bool:
        return not self._keeps_open
