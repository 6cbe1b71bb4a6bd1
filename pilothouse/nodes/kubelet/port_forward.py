"""/portForward: connections to pod ports, as stream pairs of one SPDY connection or channel pairs of one WebSocket."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from dataclasses import field
from hashlib import sha256
from typing import Final

from pilothouse.apiserver.http import Request, Response
from pilothouse.apiserver.proxy.stream_tunnel import PREFIX, tunneled_protocols
from pilothouse.apiserver.serving.upgrade import RawConnection, raw_connection, until_one_ends
from pilothouse.apiserver.serving.websocket import (
    BINARY,
    handshake_refusal,
    is_websocket_request,
    negotiated_subprotocol,
    subprotocols,
    switched,
)
from pilothouse.apiserver.serving.websocket_channels import V4, V4_BASE64, V5, Channels, DuplexWebSocket
from pilothouse.apiserver.spdy.connection import SpdyConnection, StreamRefused
from pilothouse.apiserver.spdy.stream import SpdyStream
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json, part, uid_of
from pilothouse.nodes.kubelet.host import Host
from pilothouse.nodes.kubelet.pod_page import ByteStream, PodPort, PodServer
from pilothouse.nodes.kubelet.spdy_sessions import negotiated

_PROTOCOL: Final = "portforward.k8s.io"
_KINDS: Final = ("data", "error")
_CHUNK: Final = 64 * 1024
_MOST_HALF_PAIRS: Final = 256
_CHANNEL_PROTOCOLS: Final = ("", V4, V4_BASE64)
_MOST_PORTS: Final = 127


def port_forward(host: Host, request: Request, namespace: str, name: str) -> Response:
    """Forward ports of a running pod. WebSockets without the SPDY tunnel name their ports in the query."""
    pod = host.pods.get(namespace, name)
    if pod is None:
        return Response(404, b"pod does not exist")
    if part(pod, "status").get("phase") != "Running":
        return Response(500, f'pod not found ("{name}_{namespace}")'.encode())
    if _PROTOCOL in tunneled_protocols(request):
        return handshake_refusal(request) or switched(
            request, PREFIX + _PROTOCOL, _Forwarding(host, pod).run_in_websocket
        )
    if is_websocket_request(request):
        return _forward_channels(host, request, pod)
    chosen = negotiated(request, (_PROTOCOL,))
    if isinstance(chosen, Response):
        return chosen
    return Response(101, headers=chosen.headers, upgrade=_Forwarding(host, pod).run)


@dataclass(slots=True)
class _Forwarding:
    host: Host
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
            if problem := await _serve_port(PodPort(self.host, self.pod, port), data):
                await error.write(problem.encode())
        await data.close()
        await error.close()


async def _serve_port(port: PodPort, stream: ByteStream) -> str:
    """Serve one connection to the port. Returns the error of a kubelet for a closed port; empty otherwise."""
    if await port.is_open():
        await PodServer(port, stream).run()
        return ""
    number, uid = port.number, uid_of(port.pod)
    sandbox = sha256(uid.encode()).hexdigest()
    return (
        f"error forwarding port {number} to pod {sandbox}, uid : failed to execute portforward in network namespace"
        f' "/var/run/netns/cni-{uid}": failed to connect to localhost:{number} inside namespace "{sandbox}",'
        f" IPv4: dial tcp4 127.0.0.1:{number}: connect: connection refused"
        " IPv6 dial tcp6: address localhost: no suitable address found "
    )


async def _inwards(web: DuplexWebSocket, inside: RawConnection) -> None:
    with suppress(OSError):
        while (piece := await web.receive()) is not None:
            inside.writer.write(piece.data)
            await inside.writer.drain()


async def _outwards(web: DuplexWebSocket, inside: RawConnection) -> None:
    with suppress(OSError):
        while data := await inside.reader.read(_CHUNK):
            await web.send(BINARY, data)


def _forward_channels(host: Host, request: Request, pod: Json) -> Response:
    try:
        ports = _forwarded_ports(request)
    except ValueError as error:
        return Response(400, str(error).encode())
    if refused := handshake_refusal(request):
        return refused
    # Kubelets know no v5 here. Clients that offer nothing else get it as v4 whose channels the client can close.
    chosen = negotiated_subprotocol(request, _CHANNEL_PROTOCOLS) or negotiated_subprotocol(request, (V5,))
    if chosen is None and subprotocols(request):
        return Response(403)
    return switched(request, chosen or "", _ChannelForwarding(host, pod, ports, chosen or "").run)


def _forwarded_ports(request: Request) -> list[int]:
    """Parse the ports of the query. Raises ValueError."""
    texts = request.query.get("port") or ()
    if not texts:
        raise ValueError('query parameter "port" is required')
    ports: list[int] = []
    for text in texts:
        if not text:
            raise ValueError('query parameter "port" cannot be empty')
        for number in text.split(",", _MOST_PORTS):
            if len(ports) == _MOST_PORTS:
                raise ValueError(f"at most {_MOST_PORTS} ports can be forwarded over one WebSocket")
            ports.append(port := _port(number, text))
            if not port:
                raise ValueError(f"port {quote(text)} must be > 0")
    return ports


def _port(number: str, text: str) -> int:
    problem = "invalid syntax"
    if number.isascii() and number.isdecimal():
        if len(number.lstrip("0")) < 6 and int(number) < 2**16:
            return int(number)
        problem = "value out of range"
    raise ValueError(f"unable to parse {quote(text)} as a port: strconv.ParseUint: parsing {quote(number)}: {problem}")


@dataclass(frozen=True, slots=True)
class _ChannelForwarding:
    """Channels 2n and 2n+1 carry data and errors of the nth port. Both begin with the port, in two bytes."""

    host: Host
    pod: Json
    ports: list[int]
    protocol: str

    async def run(self, transport: asyncio.Transport, received: bytes) -> None:
        """Run until every port is closed or the client disconnects."""
        channels = Channels(DuplexWebSocket(raw_connection(transport, received)), self.protocol)
        streams = [_Channel(channels, 2 * number) for number in range(len(self.ports))]
        try:
            await until_one_ends(_dispatch(channels, streams), self._forward_all(channels, streams))
        finally:
            channels.close()

    async def _forward_all(self, channels: Channels, streams: list[_Channel]) -> None:
        with suppress(OSError):
            for stream, port in zip(streams, self.ports, strict=True):
                for number in (stream.number, stream.number + 1):
                    await channels.send(number, port.to_bytes(2, "little"))
            async with asyncio.TaskGroup() as tasks:
                for stream, port in zip(streams, self.ports, strict=True):
                    tasks.create_task(self._forward(port, stream))

    async def _forward(self, port: int, stream: _Channel) -> None:
        with suppress(OSError):
            if problem := await _serve_port(PodPort(self.host, self.pod, port), stream):
                await stream.fail(problem)
        stream.close()


class _Channel:
    """The data channel of a port: buffers one message and applies back-pressure to the client."""

    def __init__(self, channels: Channels, number: int) -> None:
        self._channels, self.number = channels, number
        self._received: asyncio.Queue[bytes] = asyncio.Queue(1)
        self._is_over = self._is_closed = False

    async def put(self, data: bytes) -> None:
        """Deliver received data; empty data is the end. A closed channel drops the data."""
        if not self._is_closed:
            await self._received.put(data)

    async def read(self) -> bytes:
        """Return the next data; empty at the end."""
        if self._is_over:
            return b""
        data = await self._received.get()
        self._is_over = not data
        return data

    async def write(self, data: bytes) -> None:
        await self._channels.send(self.number, data)

    async def fail(self, problem: str) -> None:
        """Report an error on the error channel of the port."""
        await self._channels.send(self.number + 1, problem.encode())

    def close(self) -> None:
        """Drop waiting and further data."""
        self._is_closed = True
        while not self._received.empty():
            self._received.get_nowait()


async def _dispatch(channels: Channels, streams: list[_Channel]) -> None:
    """Receive messages until the client disconnects. Messages of unknown channels are dropped."""
    while (received := await channels.receive()) is not None:
        place, is_error = divmod(received.channel, 2)
        if place < len(streams) and not is_error and received.data != b"":
            await streams[place].put(received.data or b"")
