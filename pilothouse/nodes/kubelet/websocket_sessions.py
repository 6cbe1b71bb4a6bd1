"""Sessions over WebSocket: channels for stdin, stdout, stderr, resize and error."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from pilothouse.apiserver.http import Request, Response
from pilothouse.apiserver.proxy.remote_command import SessionStreams
from pilothouse.apiserver.serving import websocket_channels
from pilothouse.apiserver.serving.upgrade import raw_connection, until_one_ends
from pilothouse.apiserver.serving.websocket import handshake_refusal, negotiated_subprotocol, switched
from pilothouse.machinery.dataclass import dataclass
from pilothouse.nodes.kubelet.session import Nowhere, Session, Work, status_bytes

_PROTOCOLS: Final = (
    "",
    websocket_channels.V1,
    websocket_channels.V1_BASE64,
    websocket_channels.V4,
    websocket_channels.V4_BASE64,
    websocket_channels.V5,
)
_WITH_STATUS: Final = (websocket_channels.V4, websocket_channels.V4_BASE64, websocket_channels.V5)


def websocket_session(request: Request, wanted: SessionStreams, work: Work) -> Response:
    if refused := handshake_refusal(request):
        return refused
    chosen = negotiated_subprotocol(request, _PROTOCOLS)
    if chosen is None:
        return Response(403)
    return switched(request, chosen, _WebSocketSession(wanted, work, chosen).run)


@dataclass(frozen=True, slots=True)
class _WebSocketSession:
    wanted: SessionStreams
    work: Work
    protocol: str

    async def run(self, transport: asyncio.Transport, received: bytes) -> None:
        """Run until the work ends or the client disconnects."""
        channels = websocket_channels.Channels(
            websocket_channels.DuplexWebSocket(raw_connection(transport, received)), self.protocol
        )
        stdin = _Received()
        try:
            await until_one_ends(_take(channels, stdin, wanted=self.wanted.stdin), self._session(channels, stdin))
        finally:
            channels.close()

    async def _session(self, channels: websocket_channels.Channels, stdin: _Received) -> None:
        wanted = self.wanted
        first = (
            websocket_channels.STDOUT
            if wanted.stdout
            else websocket_channels.STDERR
            if wanted.stderr
            else websocket_channels.ERROR
        )
        stdout = _Sent(channels, websocket_channels.STDOUT) if wanted.stdout else Nowhere()
        stderr = _Sent(channels, websocket_channels.STDERR) if wanted.stderr else stdout
        with suppress(OSError):
            await channels.send(first, b"")  # signals an established connection to the client
            status = await self.work(Session(stdin, stdout, stderr, wanted.tty))
            if message := status_bytes(status, as_json=self.protocol in _WITH_STATUS):
                await channels.send(websocket_channels.ERROR, message)


class _Received:
    """Input from a channel: buffers one message and applies back-pressure to the client."""

    def __init__(self) -> None:
        self._pieces: asyncio.Queue[bytes] = asyncio.Queue(1)
        self._is_over = False

    async def put(self, data: bytes) -> None:
        await self._pieces.put(data)

    async def read(self) -> bytes:
        if self._is_over:
            return b""
        data = await self._pieces.get()
        self._is_over = not data
        return data


@dataclass(frozen=True, slots=True)
class _Sent:
    channels: websocket_channels.Channels
    number: int

    async def write(self, data: bytes) -> None:
        await self.channels.send(self.number, data)


async def _take(channels: websocket_channels.Channels, stdin: _Received, *, wanted: bool) -> None:
    """Receive messages until the client disconnects."""
    if not wanted:
        await stdin.put(b"")
    is_open = wanted
    while (received := await channels.receive()) is not None:
        if received.channel == websocket_channels.STDIN and is_open and received.data != b"":
            is_open = received.data is not None
            await stdin.put(received.data or b"")
