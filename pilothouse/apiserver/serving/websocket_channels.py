"""Channels of a remote command session over a WebSocket: each message starts with its channel number."""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from typing import Final

from pilothouse.apiserver.serving.websocket_duplex import DuplexWebSocket, Piece
from pilothouse.apiserver.serving.websocket_frames import BINARY, TEXT
from pilothouse.machinery.dataclass import dataclass

STDIN, STDOUT, STDERR, ERROR, RESIZE = range(5)
V5: Final = "v5.channel.k8s.io"
"""The only version in which clients can close a channel."""
V4: Final = "v4.channel.k8s.io"
V4_BASE64: Final = "v4.base64.channel.k8s.io"
V1: Final = "channel.k8s.io"
V1_BASE64: Final = "base64.channel.k8s.io"
_CLOSE_SIGNAL: Final = 255


@dataclass(frozen=True, slots=True)
class Received:
    channel: int
    data: bytes | None
    """None if the client closed the channel."""


class Channels:
    def __init__(self, socket: DuplexWebSocket, protocol: str) -> None:
        self._socket = socket
        self._is_base64 = protocol in (V4_BASE64, V1_BASE64)
        self._can_close = protocol == V5
        self._channel = 0
        self._rest = b""  # incomplete base64 group

    async def send(self, channel: int, data: bytes) -> None:
        """Send data on a channel. Raises ConnectionError after a disconnect."""
        if self._is_base64:
            await self._socket.send(TEXT, b"%d" % channel + b64encode(data))
        else:
            await self._socket.send(BINARY, bytes((channel,)) + data)

    async def receive(self) -> Received | None:
        """Return the next message, or None after a disconnect or an invalid message."""
        while (piece := await self._socket.receive()) is not None:
            if piece.begins and self._can_close and piece.data[:1] == bytes((_CLOSE_SIGNAL,)):
                is_right = len(piece.data) == 2 and piece.ends
                return Received(piece.data[1], None) if is_right else None
            if piece.data:
                return self._received(piece)
        return None

    def _received(self, piece: Piece) -> Received | None:
        data = piece.data
        if piece.begins:
            self._channel, data, self._rest = data[0], data[1:], b""
        if not self._is_base64:
            return Received(self._channel, data)
        data = self._rest + data
        whole = len(data) - len(data) % 4
        self._rest = data[whole:]
        try:
            return Received(self._channel - ord("0"), b64decode(data[:whole], validate=True))
        except NotBase64:
            return None

    def close(self) -> None:
        self._socket.close()
