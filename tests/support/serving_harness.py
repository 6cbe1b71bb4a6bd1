"""Clients that speak to a real server over real sockets, as slowly or as wrongly as a test wants."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import h2.config
import h2.connection
import h2.events
import h2.settings
from patience import PATIENCE

from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.apiserver.serving.limits import Limits
from pilothouse.apiserver.serving.secure import SecureServing, SecureServingInfo
from pilothouse.apiserver.serving.server import Server
from pilothouse.apiserver.serving.tls_context import TlsFiles
from pilothouse.apiserver.serving.tls_options import KeyPair
from pilothouse.controlplane.certificates.paths import CertificatePaths
from pilothouse.testing import API


@dataclass
class Answer:
    status: int
    headers: dict[bytes, bytes]
    body: bytes


def transport_of(writer: asyncio.StreamWriter) -> asyncio.Transport:
    """The same, as what can also be told to read no more."""
    return cast("asyncio.Transport", writer.transport)  # uvloop's are not of asyncio's class


def secure_options(pki: CertificatePaths, **changes: Any) -> SecureServingInfo:
    files = TlsFiles(KeyPair(pki.serving_cert, pki.serving_key), client_cas=(pki.ca_cert,))
    options = SecureServingInfo(files=files, bind_address="127.0.0.1", secure_port=0)
    return replace(options, **changes)


@asynccontextmanager
async def serving(
    handler: Handler, options: SecureServingInfo, *, limits: Limits | None = None, tick: float = 0.01
) -> AsyncIterator[Server]:
    limits = replace(limits or Limits(), linger=0.05)
    server = Server(handler, [SecureServing(options).endpoint], limits=limits, tick_seconds=tick)
    await server.start()
    try:
        yield server
    finally:
        await server.abort()


def client_context(
    pki: CertificatePaths, *, alpn: str, cert: Path | None = None, key: Path | None = None
) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(pki.ca_cert))
    context.set_alpn_protocols([alpn])
    if cert is not None:
        context.load_cert_chain(cert, key)
    return context


def port_and_context(api: API, *, alpn: str) -> tuple[int, ssl.SSLContext]:
    """Where a whole server listens, and how to speak to it."""
    port = urlsplit(api.url).port
    assert port is not None
    return port, client_context(CertificatePaths.under(api.home.data_dir), alpn=alpn)


class Http1Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def connect(cls, port: int, context: ssl.SSLContext | None) -> Http1Client:
        return cls(*await asyncio.open_connection("127.0.0.1", port, ssl=context))

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    def ask(self, target: str, method: str = "GET", headers: str = "", body: bytes = b"") -> None:
        length = f"Content-Length: {len(body)}\r\n" if body else ""
        self.send(f"{method} {target} HTTP/1.1\r\nHost: here\r\n{headers}{length}\r\n".encode() + body)

    async def head(self) -> Answer:
        async with asyncio.timeout(PATIENCE):
            lines = (await self.reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
        fields = (line.partition(b": ") for line in lines[1:] if line)
        return Answer(int(lines[0].split()[1]), {name: value for name, _, value in fields}, b"")

    async def answer(self, *, bodiless: bool = False) -> Answer:
        answer = await self.head()
        async with asyncio.timeout(PATIENCE):
            if bodiless:
                return answer
            if answer.headers.get(b"transfer-encoding") == b"chunked":
                while chunk := await self.chunk():
                    answer.body += chunk
            elif (length := answer.headers.get(b"content-length")) is not None:
                answer.body = await self.reader.readexactly(int(length))
            else:
                answer.body = await self.reader.read()
        return answer

    async def chunk(self) -> bytes:
        async with asyncio.timeout(PATIENCE):
            size = int(await self.reader.readuntil(b"\r\n"), 16)
            return (await self.reader.readexactly(size + 2))[:-2]

    async def end(self) -> bytes:
        """What comes until the server closes."""
        async with asyncio.timeout(PATIENCE):
            try:
                return await self.reader.read()
            except (ConnectionError, ssl.SSLError):
                return b""

    def close(self) -> None:
        self.writer.transport.abort()


@dataclass
class StreamLog:
    headers: dict[bytes, bytes] = field(default_factory=dict)
    body: bytes = b""
    ended: bool = False
    reset: int | None = None

    @property
    def status(self) -> int:
        return int(self.headers[b":status"])


class Http2Client:
    """Grants no window by itself, so that a test decides what the server may send."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        config = h2.config.H2Configuration(client_side=True, header_encoding=None)
        self.h2 = h2.connection.H2Connection(config)
        self.streams: dict[int, StreamLog] = {}
        self.events: list[h2.events.Event] = []
        self.closed = False

    @classmethod
    async def connect(cls, port: int, context: ssl.SSLContext, *, window: int | None = None) -> Http2Client:
        client = cls(*await asyncio.open_connection("127.0.0.1", port, ssl=context))
        if window is not None:
            values = {h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: window}
            client.h2.local_settings = h2.settings.Settings(client=True, initial_values=values)
        client.h2.initiate_connection()
        client.flush()
        return client

    def flush(self) -> None:
        self.writer.write(self.h2.data_to_send())

    def open(self, path: str, method: str, headers: list[tuple[str, str]] | None = None) -> int:
        """Begins a request whose body is still to come."""
        stream = self.h2.get_next_available_stream_id()
        lines = [(":method", method), (":path", path), (":scheme", "https"), (":authority", "here"), *(headers or [])]
        self.h2.send_headers(stream, lines)
        self.streams[stream] = StreamLog()
        self.flush()
        return stream

    def ask(
        self, path: str, method: str = "GET", *, body: bytes | None = None, headers: list[tuple[str, str]] | None = None
    ) -> int:
        stream = self.h2.get_next_available_stream_id()
        lines = [(":method", method), (":path", path), (":scheme", "https"), (":authority", "here"), *(headers or [])]
        self.h2.send_headers(stream, lines, end_stream=body is None)
        if body is not None:
            self.h2.send_data(stream, body, end_stream=True)
        self.streams[stream] = StreamLog()
        self.flush()
        return stream

    async def until(self, condition: Callable[[], Any]) -> None:
        """Reads until the condition holds; fails when it does not in time, or the server closes first."""
        async with asyncio.timeout(PATIENCE):
            while not condition():
                await self._read_some()
                if self.closed and not condition():
                    raise ConnectionError("the server closed the connection")

    async def _read_some(self) -> None:
        try:
            data = await self.reader.read(65536)
        except (ConnectionError, ssl.SSLError):
            data = b""
        self.closed = not data
        for event in self.h2.receive_data(data) if data else ():
            self.events.append(event)
            self._note(event)
        self.flush()

    def _note(self, event: h2.events.Event) -> None:
        log = self.streams.get(getattr(event, "stream_id", None) or 0, StreamLog())
        if isinstance(event, h2.events.ResponseReceived):
            log.headers = dict(event.headers)
        elif isinstance(event, h2.events.DataReceived):
            log.body += event.data
        elif isinstance(event, h2.events.StreamEnded):
            log.ended = True
        elif isinstance(event, h2.events.StreamReset):
            log.reset = int(event.error_code)

    def grant(self, stream: int, size: int) -> None:
        for target in (stream, None):
            self.h2.increment_flow_control_window(size, target)
        self.flush()

    async def answer(self, stream: int) -> StreamLog:
        log = self.streams[stream]
        await self.until(lambda: log.ended or log.reset is not None)
        return log

    async def get(self, path: str, method: str = "GET", **more: Any) -> StreamLog:
        return await self.answer(self.ask(path, method, **more))

    async def goaway(self) -> int:
        """The error code of the server's GOAWAY."""
        await self.until(lambda: self._terminated() is not None)
        event = self._terminated()
        assert event is not None
        assert event.error_code is not None
        return int(event.error_code)

    def _terminated(self) -> h2.events.ConnectionTerminated | None:
        return next((event for event in self.events if isinstance(event, h2.events.ConnectionTerminated)), None)

    def close(self) -> None:
        self.writer.transport.abort()


async def eventually(condition: Callable[[], Any]) -> None:
    """Lets the event loop turn until the condition holds."""
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110  # what is waited for is inside the server
            await asyncio.sleep(0.001)


def answering(body: bytes | Callable[[], AsyncIterator[bytes]], status: int = 200) -> Handler:
    async def handler(request: Request) -> Response:
        return Response(status, body if isinstance(body, bytes) else body(), [(b"content-type", b"text/plain")])

    return handler


Test = Callable[..., Coroutine[Any, Any, None]]
