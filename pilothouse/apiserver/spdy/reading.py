"""Frame reader. Control frames are read whole; data frames are read in pieces, to bound memory."""

from __future__ import annotations

import asyncio
from typing import Final

from pilothouse.apiserver.spdy.frames import (
    CONTROL,
    FIN,
    FRAME_HEADER,
    MAX_CONTROL_PAYLOAD,
    MAX_DATA,
    Data,
    Frame,
    SpdyError,
    decode_control,
)
from pilothouse.apiserver.spdy.header_block import HeaderDecompressor

_PIECE: Final = 64 * 1024


class FrameReader:
    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._decompressor = HeaderDecompressor()
        self._stream = 0
        self._left = 0  # unreturned bytes of the data frame of `_stream`
        self._fin = False

    async def read(self) -> Frame | None:
        """Return the next frame or piece of a data frame; None at the end. The last piece carries the frame's flags.

        Raises SpdyError, or OSError if the connection breaks.
        """
        if self._left:
            return await self._piece()
        try:
            word, rest = FRAME_HEADER.unpack(await self._reader.readexactly(FRAME_HEADER.size))
            flags, length = rest >> 24, rest & MAX_DATA
            if word & CONTROL:
                if length > MAX_CONTROL_PAYLOAD:
                    raise SpdyError(f"control frame of {length} bytes")
                return decode_control(word, flags, await self._reader.readexactly(length), self._decompressor)
        except asyncio.IncompleteReadError:
            return None
        if not word:
            raise SpdyError("stream id zero is disallowed")
        self._stream, self._left, self._fin = word, length, bool(flags & FIN)
        return await self._piece() if length else Data(word, b"", self._fin)

    async def _piece(self) -> Data | None:
        data = await self._reader.read(min(self._left, _PIECE))
        if not data:
            return None
        self._left -= len(data)
        return Data(self._stream, data, self._fin and not self._left)
