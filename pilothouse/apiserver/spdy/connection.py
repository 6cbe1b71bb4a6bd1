"""A SPDY endpoint: streams, pings and shutdown.

Kubernetes uses no flow-control windows. An unread stream pauses reading of the whole connection, which applies back-
pressure to the peer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeAlias

from pilothouse.apiserver.spdy import frames
from pilothouse.apiserver.spdy.header_block import HeaderCompressor, HeaderDecompressor, StreamHeaders
from pilothouse.apiserver.spdy.stream import SpdyStream

MAX_STREAMS: Final = 1024
"""Maximum concurrent streams per connection."""
IDLE_SECONDS: Final = 4 * 60 * 60.0
_ANSWER_SECONDS: Final = 30.0
_LEAVE_SECONDS: Final = 10.0


class StreamRefused(Exception):
    """The acceptor rejects the stream."""


Accept: TypeAlias = Callable[[SpdyStream], None]
"""Accept a stream of the peer, or raise StreamRefused."""


class SpdyConnection:
    """A SPDY connection. Frames are received only while `run` runs. The server uses even ids for streams and pings."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        serves: bool,
        accept: Accept | None = None,
    ) -> None:
        self._frames = FrameReader(reader)
        self._writer = writer
        self._compressor = HeaderCompressor()
        self._accept = accept
        self._streams: dict[int, SpdyStream] = {}
        self._next_stream = self._next_ping = 2 if serves else 1
        self._theirs = 0  # the peer's last stream
        self._parity = 1 if serves else 0  # of the peer's stream ids
        self._is_closed = False
        self._used = asyncio.get_running_loop().time()
        self._idle_timer: asyncio.TimerHandle | None = None

    async def run(self, *, idle_seconds: float = IDLE_SECONDS) -> None:
        """Receive until the peer disconnects, violates the protocol, or the connection is idle for too long."""
        self._close_when_idle(idle_seconds)
        failed = frames.GoAwayStatus.OK
        try:
            while (frame := await self._frames.read()) is not None and not isinstance(frame, frames.GoAway):
                self._used = asyncio.get_running_loop().time()
                await self._handle(frame)
        except frames.SpdyError:
            failed = frames.GoAwayStatus.PROTOCOL_ERROR
        except OSError:
            pass
        finally:
            self._end(failed)

    def _close_when_idle(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        left = self._used + seconds - loop.time()
        if left <= 0:
            self.close()
        else:
            self._idle_timer = loop.call_later(left, self._close_when_idle, seconds)

    async def _handle(self, frame: frames.Frame) -> None:
        match frame:
            case frames.Data(stream, data, fin):
                if known := self._streams.get(stream):
                    await known.feed(data, fin=fin)
                    self.forget_when_over(known)
            case frames.SynStream():
                await self._offered(frame)
            case frames.SynReply(stream, _, fin):
                if known := self._streams.get(stream):
                    known.answered.set()
                    await known.feed(b"", fin=fin)
            case frames.RstStream(stream, _):
                if known := self._streams.pop(stream, None):
                    known.end()
            case frames.Ping(number) if number % 2 == self._parity:
                await self.send(frame)
            case _:
                pass  # ping replies; settings, windows and late headers are ignored

    async def _offered(self, frame: frames.SynStream) -> None:
        number = frame.stream
        if number % 2 != self._parity or number <= self._theirs:
            await self.send(frames.RstStream(number, frames.ResetStatus.PROTOCOL_ERROR))
            return
        self._theirs = number
        stream = SpdyStream(self, number, frame.headers)
        if not self._takes(stream):
            await self.send(frames.RstStream(number, frames.ResetStatus.REFUSED_STREAM))
            return
        self._streams[number] = stream
        await self.send(frames.SynReply(number, {}))
        await stream.feed(b"", fin=frame.fin)

    def _takes(self, stream: SpdyStream) -> bool:
        if self._accept is None or len(self._streams) >= MAX_STREAMS:
            return False
        with suppress(StreamRefused):
            self._accept(stream)
            return True
        return False

    async def create_stream(self, headers: StreamHeaders) -> SpdyStream:
        """Open a stream, and wait for its acceptance.

        Raises ConnectionError on rejection, TimeoutError without a timely reply.
        """
        if self._is_closed:
            raise ConnectionResetError("the connection is closed")
        stream = SpdyStream(self, self._next_stream, headers)
        self._next_stream += 2
        self._streams[stream.id] = stream
        await self.send(frames.SynStream(stream.id, headers))
        async with asyncio.timeout(_ANSWER_SECONDS):
            await stream.answered.wait()
        if stream.is_refused:
            raise ConnectionResetError("the stream was refused")
        return stream

    async def ping_every(self, seconds: float) -> None:
        """Ping until the connection closes, to keep intermediaries from dropping it."""
        while not self._is_closed:
            await asyncio.sleep(seconds)
            await self.send(frames.Ping(self._next_ping))
            self._next_ping = (self._next_ping + 2) % 2**31 or 2

    async def send(self, frame: frames.Frame) -> None:
        """Send a frame, and wait while the peer is slow. No-op on a closed connection."""
        if not self._is_closed:
            self._used = asyncio.get_running_loop().time()
            self._writer.write(frames.encode(frame, self._compressor))
            with suppress(ConnectionError):
                await self._writer.drain()

    def forget_when_over(self, stream: SpdyStream) -> None:
        if stream.is_over:
            self._streams.pop(stream.id, None)

    def close(self) -> None:
        """Reset open streams and send GOAWAY. Previously written data is still sent."""
        self._end(frames.GoAwayStatus.OK)

    def _end(self, status: frames.GoAwayStatus) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        leave: list[frames.Frame] = [
            *(frames.RstStream(number, frames.ResetStatus.CANCEL) for number in self._streams),
            frames.GoAway(self._theirs, status),
        ]
        self._writer.writelines([frames.encode(frame, self._compressor) for frame in leave])
        self._writer.close()
        # A peer that does not read must not keep the connection open.
        asyncio.get_running_loop().call_later(_LEAVE_SECONDS, self._writer.transport.abort)
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        for stream in self._streams.values():
            stream.end()
        self._streams.clear()


_PIECE: Final = 64 * 1024


class FrameReader:
    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._decompressor = HeaderDecompressor()
        self._stream = 0
        self._left = 0  # unreturned bytes of the data frame of `_stream`
        self._fin = False

    async def read(self) -> frames.Frame | None:
        """Return the next frame or piece of a data frame; None at the end. The last piece carries the frame's flags.

        Raises SpdyError, or OSError if the connection breaks.
        """
        if self._left:
            return await self._piece()
        try:
            word, rest = frames.FRAME_HEADER.unpack(await self._reader.readexactly(frames.FRAME_HEADER.size))
            flags, length = rest >> 24, rest & frames.MAX_DATA
            if word & frames.CONTROL:
                if length > frames.MAX_CONTROL_PAYLOAD:
                    raise frames.SpdyError(f"control frame of {length} bytes")
                return frames.decode_control(word, flags, await self._reader.readexactly(length), self._decompressor)
        except asyncio.IncompleteReadError:
            return None
        if not word:
            raise frames.SpdyError("stream id zero is disallowed")
        self._stream, self._left, self._fin = word, length, bool(flags & frames.FIN)
        return await self._piece() if length else frames.Data(word, b"", self._fin)

    async def _piece(self) -> frames.Data | None:
        data = await self._reader.read(min(self._left, _PIECE))
        if not data:
            return None
        self._left -= len(data)
        return frames.Data(self._stream, data, self._fin and not self._left)
