"""SPDY tunneled through a WebSocket: each message carries bytes of the backend's SPDY connection."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from pilothouse.apiserver.http import Request, Response
from pilothouse.apiserver.outbound.targets import Target
from pilothouse.apiserver.proxy.upgrades import TUNNELED, Upgraded, ask_for_upgrade, forwarded_headers, refusal_of
from pilothouse.apiserver.serving import websocket
from pilothouse.apiserver.serving.upgrade import raw_connection, until_one_ends
from pilothouse.apiserver.serving.websocket_channels import DuplexWebSocket
from pilothouse.machinery.dataclass import dataclass

SPDY: Final = "SPDY/3.1"
PREFIX: Final = f"{SPDY}+"
_SUFFIX: Final = ".k8s.io"
_CHUNK: Final = 32 * 1024
_OWN: Final = frozenset({b"upgrade", b"x-stream-protocol-version"})


def tunneled_protocols(request: Request) -> list[str]:
    """Return the requested SPDY protocols of the tunnel."""
    if not websocket.is_websocket_request(request):
        return []
    asked = websocket.subprotocols(request)
    return [each.removeprefix(PREFIX) for each in asked if each.startswith(PREFIX) and each.endswith(_SUFFIX)]


async def tunneled(request: Request, target: Target) -> Response:
    """Answer a request with `tunneled_protocols`. Raises StatusError if the target is unreachable."""
    answer = websocket.handshake_refusal(request) or await _asked(request, target)
    TUNNELED.inc((str(answer.status),))
    return answer


async def _asked(request: Request, target: Target) -> Response:
    kept = [
        (name, value)
        for name, value in forwarded_headers(request)
        if name not in _OWN and not name.startswith(b"sec-websocket-")
    ]
    protocols = [(b"x-stream-protocol-version", each.encode()) for each in tunneled_protocols(request)]
    answer = await ask_for_upgrade(
        "POST", target, [*kept, (b"upgrade", SPDY.encode()), *protocols, (b"content-length", b"0")]
    )
    if not answer.is_switched:
        return await refusal_of(answer)
    if SPDY.lower() not in answer.header(b"upgrade").lower():
        answer.writer.close()
        return Response(500, b"unable to upgrade: missing upgrade headers in response\n")
    chosen = answer.header(b"x-stream-protocol-version")
    return websocket.switched(request, f"{PREFIX}{chosen}" if chosen else "", _Tunnel(answer).run)


@dataclass(frozen=True, slots=True)
class _Tunnel:
    behind: Upgraded

    async def run(self, transport: asyncio.Transport, received: bytes) -> None:
        """Run until either side closes, then close the other."""
        socket = DuplexWebSocket(raw_connection(transport, received))
        try:
            await until_one_ends(self._inwards(socket), self._outwards(socket))
        finally:
            self.behind.writer.close()
            socket.close()

    async def _inwards(self, socket: DuplexWebSocket) -> None:
        with suppress(OSError):
            while (piece := await socket.receive()) is not None:
                self.behind.writer.write(piece.data)
                await self.behind.writer.drain()

    async def _outwards(self, socket: DuplexWebSocket) -> None:
        with suppress(OSError):
            while data := await self.behind.reader.read(_CHUNK):
                await socket.send(websocket.BINARY, data)
