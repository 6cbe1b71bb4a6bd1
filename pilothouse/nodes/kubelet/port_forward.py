"""/portForward: connections to pod ports, as stream pairs of one SPDY connection."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from dataclasses import field
from typing import Final

from pilothouse.apiserver.http import Request, Response
from pilothouse.apiserver.proxy.stream_tunnel import PREFIX, tunneled_protocols
from pilothouse.apiserver.serving.upgrade import RawConnection, raw_connection, until_one_ends
from pilothouse.apiserver.serving.websocket import BINARY, handshake_refusal, switched
from pilothouse.apiserver.serving.websocket_channels import DuplexWebSocket
from pilothouse.apiserver.spdy.connection import SpdyConnection, StreamRefused
from pilothouse.apiserver.spdy.stream import SpdyStream
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, part
from pilothouse.nodes.kubelet.host import Host
from pilothouse.nodes.kubelet.pod_page import PodServer
from pilothouse.nodes.kubelet.spdy_sessions import negotiated

_PROTOCOL: Final = "portforward.k8s.io"
_KINDS: Final = ("data", "error")
_CHUNK: Final = 64 * 1024
_MOST_HALF_PAIRS: Final = 256


def port_forward(host: Host, request: Request, namespace: str, name: str) -> Response:
    pod = host.pods.get(namespace, name)
    if pod is None:
        return Response(404, b"pod does not exist")
    if part(pod, "status").get("phase") != "Running":
        return Response(500, f'pod not found ("{name}_{namespace}")'.encode())
    if _PROTOCOL in tunneled_protocols(request):
        return handshake_refusal(request) or switched(request, PREFIX + _PROTOCOL, _Forwarding(pod).run_in_websocket)
    chosen = negotiated(request, (_PROTOCOL,))
    if isinstance(chosen, Response):
        return chosen
    return Response(101, headers=chosen.headers, upgrade=_Forwarding(pod).run)


@dataclass(slots=True)
class _Forwarding:
    pod: Json
    waiting: dict[str, SpdyStream] = field(default_factory=dict)
    """Request id → stream that waits for its counterpart."""
    serving: set[asyncio.Task[None]] = field(default_factory=set)

    async def run(self, transport: asyncio.Transport, received: bytes) -> None:
        await self._serve(raw_connection(transport, received))

    async def run_in_websocket(self, transport: asyncio.Transport, received: bytes) -> None:
        web = DuplexWebSocket(raw_connection(transport, received))
        near, far = socket.socketpair()
        inside = RawConnection(*await asyncio.open_connection(sock=near))
        try:
            outside = RawConnection(*await asyncio.open_connection(sock=far))
            await until_one_ends(_inwards(web, inside), _outwards(web, inside), self._serve(outside))
        finally:
            inside.writer.close()
            web.close()

    async def _serve(self, client: RawConnection) -> None:
        """Serve until the client disconnects."""
        connection = SpdyConnection(client.reader, client.writer, serves=True, accept=self._accept)
        try:
            await connection.run()
        finally:
            connection.close()
            for task in self.serving:
                task.cancel()

    def _accept(self, stream: SpdyStream) -> None:
        port, kind = stream.header("port"), stream.header("streamtype")
        if not (port.isdecimal() and 0 < int(port) < 2**16) or kind not in _KINDS:
            raise StreamRefused
        # Old clients send no request id: then the error stream immediately precedes its data stream.
        key = stream.header("requestid") or str(stream.id if kind == "error" else stream.id - 2)
        other = self.waiting.pop(key, None)
        if other is None:
            if len(self.waiting) >= _MOST_HALF_PAIRS:
                raise StreamRefused
            self.waiting[key] = stream
            return
        if other.header("streamtype") == kind:
            raise StreamRefused
        data, error = (stream, other) if kind == "data" else (other, stream)
        task = asyncio.create_task(self._forward(int(port), data, error))
        self.serving.add(task)
        task.add_done_callback(self.serving.discard)

    async def _forward(self, port: int, data: SpdyStream, error: SpdyStream) -> None:
        with suppress(OSError):
            await PodServer(self.pod, port, data).run()
        await data.close()
        await error.close()


async def _inwards(web: DuplexWebSocket, inside: RawConnection) -> None:
    with suppress(OSError):
        while (piece := await web.receive()) is not None:
            inside.writer.write(piece.data)
            await inside.writer.drain()


async def _outwards(web: DuplexWebSocket, inside: RawConnection) -> None:
    with suppress(OSError):
        while data := await inside.reader.read(_CHUNK):
            await web.send(BINARY, data)
