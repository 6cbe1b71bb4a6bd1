"""Translation of WebSocket sessions to SPDY: maps each channel to a stream."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

import orjson

from pilothouse.apiserver.http import Request, Response
from pilothouse.apiserver.outbound.targets import Target
from pilothouse.apiserver.proxy.remote_command import RemoteCommand, SessionStreams, error_status
from pilothouse.apiserver.proxy.upgrades import TRANSLATED
from pilothouse.apiserver.serving import websocket_channels
from pilothouse.apiserver.serving.upgrade import raw_connection, until_one_ends
from pilothouse.apiserver.serving.websocket import handshake_refusal, is_websocket_request, subprotocols, switched
from pilothouse.apiserver.spdy.stream import SpdyStream
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json
from pilothouse.machinery.server_errors import InternalError
from pilothouse.machinery.status_error import StatusError

_STATUS_SECONDS: Final = 10.0


def is_translatable(request: Request) -> bool:
    """Return whether the client requests a v5 WebSocket, the version with closable channels."""
    return is_websocket_request(request) and websocket_channels.V5 in subprotocols(request)


def translated(request: Request, target: Target, streams: SessionStreams) -> Response:
    """Answer a request that `is_translatable`. Backend errors are sent on the error channel."""
    if refused := handshake_refusal(request):
        TRANSLATED.inc(("400",))
        return refused
    return switched(request, websocket_channels.V5, _Translation(target, streams).run)


@dataclass(slots=True)
class _Translation:
    target: Target
    wanted: SessionStreams
    status: Json | None = None
    """The outcome of the session; None while running."""

    async def run(self, transport: asyncio.Transport, received: bytes) -> None:
        """Run until the session ends or the client disconnects."""
        channels = websocket_channels.Channels(
            websocket_channels.DuplexWebSocket(raw_connection(transport, received)), websocket_channels.V5
        )
        try:
            await channels.send(self._first_channel(), b"")  # signals the client that the connection is established
            try:
                async with RemoteCommand(self.target, self.wanted) as session:
                    await until_one_ends(_take(channels, session), self._give(channels, session))
            except InternalError as error:
                self.status = error_status(error)
            except StatusError as error:
                self.status = error_status(InternalError.of(error.message))
            async with asyncio.timeout(_STATUS_SECONDS):
                if self.status is not None:
                    code = 200 if self.status["status"] == "Success" else self.status.get("code") or 200
                    TRANSLATED.inc((str(code),))
                    await channels.send(websocket_channels.ERROR, orjson.dumps(self.status))
        except (OSError, TimeoutError):
            pass
        finally:
            channels.close()

    def _first_channel(self) -> int:
        if self.wanted.stdout:
            return websocket_channels.STDOUT
        return websocket_channels.STDERR if self.wanted.stderr else websocket_channels.ERROR

    async def _give(self, channels: websocket_channels.Channels, session: RemoteCommand) -> None:
        """Copy the output until the session has ended and all output is sent."""
        outputs = ((session.stdout, websocket_channels.STDOUT), (session.stderr, websocket_channels.STDERR))
        with suppress(ConnectionError):
            await asyncio.gather(*(_copy(stream, channels, number) for stream, number in outputs if stream))
            self.status = await session.status()


async def _copy(stream: SpdyStream, channels: websocket_channels.Channels, number: int) -> None:
    while data := await stream.read():
        await channels.send(number, data)


async def _take(channels: websocket_channels.Channels, session: RemoteCommand) -> None:
    """Copy the input until the client disconnects. Data for closed or unrequested streams is dropped."""
    streams = {websocket_channels.STDIN: session.stdin, websocket_channels.RESIZE: session.resize}
    while (received := await channels.receive()) is not None:
        stream = streams.get(received.channel)
        if stream is None or stream.is_closed:
            continue
        if received.data is None:
            await stream.close()
        else:
            with suppress(BrokenPipeError):
                await stream.write(received.data)
