"""A very light HTTP/2 client: one connection, many requests and watches on it, as a kubelet has.

Light, because it shares a machine with the server that is measured: field lines are written as literals, the server is
told to keep no table of them, and of those that come back only the status is read. It counts no windows for what it
sends, which has to stay below 64 kB at once.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct
from typing import cast

from servers.target import Target

_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _PING, _GOAWAY, _WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
_END_STREAM, _ACK, _END_HEADERS, _PADDED, _PRIORITY = 0x1, 0x1, 0x4, 0x8, 0x20
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_NO_TABLE, _STREAM_WINDOW = (0x1, 0), (0x4, 2**31 - 1)
_CONNECTION_WINDOW = 2**29
_SETTING, _NUMBER, _HEAD = Struct(">HI"), Struct(">I"), Struct(">IBI")
_INDEXED_STATUS = {0x88: 200, 0x89: 204, 0x8A: 206, 0x8B: 304, 0x8C: 400, 0x8D: 404, 0x8E: 500}
Sink = Callable[[bytes], None]


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes


class Lost(Exception):
    """The connection or the stream ended before the answer did."""


class _Exchange:
    __slots__ = ("done", "parts", "sink", "status")

    def __init__(self, done: asyncio.Future[Answer], sink: Sink | None) -> None:
        self.done = done
        self.sink = sink
        self.status = 0
        self.parts: list[bytes] = []

    def data(self, data: bytes) -> None:
        if self.sink is not None and self.status == 200:
            self.sink(data)
        else:
            self.parts.append(data)

    def end(self) -> None:
        if not self.done.done():
            self.done.set_result(Answer(self.status, b"".join(self.parts)))

    def fail(self, why: str) -> None:
        if not self.done.done():
            self.done.set_exception(Lost(why))


class Multiplexed(asyncio.Protocol):
    bytes_received = 0

    def __init__(self, target: Target) -> None:
        host, port = target.address
        fixed = [(":scheme", "https"), (":authority", f"{host}:{port}"), ("authorization", f"Bearer {target.token}")]
        self._fixed = b"".join(_literal(name, value) for name, value in [*fixed, ("user-agent", "scale/1")])
        self._transport: asyncio.Transport
        self._buffer = bytearray()
        self._exchanges: dict[int, _Exchange] = {}
        self._next = 1
        self._unacknowledged = 0

    @classmethod
    async def connect(cls, target: Target, tls: ssl.SSLContext) -> Multiplexed:
        host, port = target.address
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(lambda: cls(target), host, port, ssl=tls)
        return connection

    def close(self) -> None:
        self._transport.close()

    async def call(
        self, method: str, path: str, body: bytes = b"", *, accept: str, media: str = "", sink: Sink | None = None
    ) -> Answer:
        """The answer. If it is a 200 and a sink is given, its bytes go there as they come. Raises Lost."""
        if self._transport.is_closing():
            raise Lost("the connection is closed")
        number, self._next = self._next, self._next + 2
        exchange = self._exchanges[number] = _Exchange(asyncio.get_running_loop().create_future(), sink)
        block = _literal(":method", method) + _literal(":path", path) + self._fixed + _literal("accept", accept)
        if body:
            block += _literal("content-type", media)
            data = _frame(_DATA, _END_STREAM, number, body)
            self._transport.write(_frame(_HEADERS, _END_HEADERS, number, block) + data)
        else:
            self._transport.write(_frame(_HEADERS, _END_HEADERS | _END_STREAM, number, block))
        return await exchange.done

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        settings = b"".join(_SETTING.pack(*setting) for setting in (_NO_TABLE, _STREAM_WINDOW))
        self._transport.write(_PREFACE + _frame(_SETTINGS, 0, 0, settings) + _window_update(_CONNECTION_WINDOW))

    def connection_lost(self, exc: Exception | None) -> None:
        for exchange in self._exchanges.values():
            exchange.fail("the connection was lost")
        self._exchanges.clear()

    def data_received(self, data: bytes) -> None:
        Multiplexed.bytes_received += len(data)
        buffer = self._buffer
        buffer += data
        at, end = 0, len(buffer)
        while end - at >= 9:
            length = int.from_bytes(buffer[at : at + 3], "big")
            if end - at < 9 + length:
                break
            number = int.from_bytes(buffer[at + 5 : at + 9], "big")
            self._frame(buffer[at + 3], buffer[at + 4], number, bytes(buffer[at + 9 : at + 9 + length]))
            at += 9 + length
        del buffer[:at]

    def _frame(self, kind: int, flags: int, number: int, payload: bytes) -> None:
        if kind == _DATA:
            self._data(number, payload[1 : len(payload) - payload[0]] if flags & _PADDED else payload)
        elif kind == _HEADERS and (exchange := self._exchanges.get(number)) is not None and not exchange.status:
            exchange.status = _status(payload, flags)
        elif kind == _SETTINGS and not flags & _ACK:
            self._transport.write(_frame(_SETTINGS, _ACK, 0, b""))
        elif kind == _PING and not flags & _ACK:
            self._transport.write(_frame(_PING, _ACK, 0, payload))
        elif kind == _RST_STREAM and (reset := self._exchanges.pop(number, None)) is not None:
            reset.fail(f"the stream was reset: {int.from_bytes(payload, 'big')}")
        elif kind == _GOAWAY:
            self._transport.close()
        if kind in (_DATA, _HEADERS) and flags & _END_STREAM and number in self._exchanges:
            self._exchanges.pop(number).end()

    def _data(self, number: int, data: bytes) -> None:
        self._unacknowledged += len(data)
        if self._unacknowledged > _CONNECTION_WINDOW // 2:
            self._transport.write(_window_update(self._unacknowledged))
            self._unacknowledged = 0
        if number in self._exchanges:
            self._exchanges[number].data(data)


def client_tls(target: Target) -> ssl.SSLContext:
    """To be shared by all connections to the target."""
    context = target.tls
    context.set_alpn_protocols(["h2"])
    return context


def _frame(kind: int, flags: int, number: int, payload: bytes) -> bytes:
    return _HEAD.pack(len(payload) << 8 | kind, flags, number) + payload


def _window_update(size: int) -> bytes:
    return _frame(_WINDOW_UPDATE, 0, 0, _NUMBER.pack(size))


def _literal(name: str, value: str) -> bytes:
    """A field line that neither side puts into a table."""
    return b"\x00" + _string(name) + _string(value)


def _string(text: str) -> bytes:
    data = text.encode()
    length = len(data)
    if length < 127:
        return bytes((length,)) + data
    prefix, rest = bytearray((127,)), length - 127
    while rest >= 128:
        prefix.append(rest & 127 | 128)
        rest >>= 7
    prefix.append(rest)
    return bytes(prefix) + data


def _status(payload: bytes, flags: int) -> int:
    """The status is the first field of an answer; without a table it is one of a few numbers, or a literal of three
    digits behind the index of its name."""
    at = bool(flags & _PADDED) + 5 * bool(flags & _PRIORITY)
    while payload[at] & 0xE0 == 0x20:  # the table's size, told once
        at += 1
    if payload[at] & 0x80:
        return _INDEXED_STATUS.get(payload[at], 0)
    text = payload[at + 2 : at + 2 + (payload[at + 1] & 0x7F)]
    return int(_huffman_digits(text) if payload[at + 1] & 0x80 else text)


def _huffman_digits(data: bytes) -> str:
    """Three digits in Huffman's code: 0, 1 and 2 are 5 bits, the others 6."""
    bits = "".join(f"{byte:08b}" for byte in data)
    digits, at = "", 0
    while len(digits) < 3:
        short = int(bits[at : at + 5], 2)
        digits += str(short) if short < 3 else str(int(bits[at : at + 6], 2) - 0x19 + 3)
        at += 5 if short < 3 else 6
    return digits
