"""Sessions over SPDY: streams for stdin, stdout, stderr, resize and error."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from pilothouse.apiserver.http import Headers, Request, Response
from pilothouse.apiserver.proxy.remote_command import SessionStreams
from pilothouse.apiserver.serving.upgrade import raw_connection, until_one_ends
from pilothouse.apiserver.spdy.connection import SpdyConnection, StreamRefused
from pilothouse.apiserver.spdy.stream import SpdyStream
from pilothouse.machinery.dataclass import dataclass
from pilothouse.nodes.containers.process import NoInput
from pilothouse.nodes.kubelet.session import CREATION_SECONDS, Nowhere, Session, Work, status_bytes

V4: Final = "v4.channel.k8s.io"
_PROTOCOLS: Final = (V4, "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io")
_RESIZABLE: Final = _PROTOCOLS[:2]


@dataclass(frozen=True, slots=True)
class Negotiated:
    protocol: str
    headers: Headers
    """Headers of the 101 response."""


def negotiated(request: Request, known: tuple[str, ...]) -> Negotiated | Response:
    """Return the negotiated protocol, or an error response without a common protocol or without SPDY."""
    values = (value.decode("latin-1") for name, value in request.headers if name == b"x-stream-protocol-version")
    requested = [protocol.strip() for value in values for protocol in value.split(",") if protocol.strip()]
    if "spdy/3.1" not in request.header(b"upgrade").lower():
        return Response(400, b"unable to upgrade: missing upgrade headers in request")
    if not requested:
        return Response(400, b"unable to upgrade: header X-Stream-Protocol-Version does not exist in request")
    chosen = next((protocol for protocol in requested if protocol in known), "")
    if not chosen:
        client, server = (f"[{' '.join(names)}]" for names in (requested, known))
        text = f"unable to upgrade: unable to negotiate protocol: client supports {client}, server accepts {server}"
        accepted = [(b"x-accepted-stream-protocol-versions", protocol.encode()) for protocol in known]
        return Response(403, text.encode(), accepted)
    answer = [
        (b"connection", b"Upgrade"),
        (b"upgrade", b"SPDY/3.1"),
        (b"x-stream-protocol-version", chosen.encode()),
    ]
    return Negotiated(chosen, answer)


def spdy_session(request: Request, wanted: SessionStreams, work: Work) -> Response:
    chosen = negotiated(request, _PROTOCOLS)
    if isinstance(chosen, Response):
        return chosen
    return Response(101, headers=chosen.headers, upgrade=_SpdySession(wanted, work, chosen.protocol).run)


class _SpdySession:
    def __init__(self, wanted: SessionStreams, work: Work, protocol: str) -> None:
        self._wanted, self._work, self._protocol = wanted, work, protocol
        self._streams: dict[str, SpdyStream] = {}
        self._complete = asyncio.Event()
        self._expected = {name for name in ("stdin", "stdout", "stderr") if getattr(wanted, name)} | {"error"}
        if wanted.tty and protocol in _RESIZABLE:
            self._expected.add("resize")

    async def run(self, transport: asyncio.Transport, received: bytes) -> None:
        """Run until the work ends or the client disconnects."""
        client = raw_connection(transport, received)
        connection = SpdyConnection(client.reader, client.writer, serves=True, accept=self._accept)
        try:
            await until_one_ends(connection.run(), self._session())
        finally:
            connection.close()

    def _accept(self, stream: SpdyStream) -> None:
        kind = stream.header("streamtype")
        if kind not in self._expected or kind in self._streams:
            raise StreamRefused
        self._streams[kind] = stream
        if self._streams.keys() == self._expected:
            self._complete.set()

    async def _session(self) -> None:
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(CREATION_SECONDS):
                await self._complete.wait()
            streams = self._streams
            session = Session(
                streams.get("stdin") or NoInput(),
                streams.get("stdout") or Nowhere(),
                streams.get("stderr") or streams.get("stdout") or Nowhere(),
                self._wanted.tty,
            )
            status = await self._work(session)
            await streams["error"].write(status_bytes(status, as_json=self._protocol == V4))
