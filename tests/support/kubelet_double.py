"""A kubelet as far as the server sees it: a TLS port that answers, streams and upgrades; and an app in a pod."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from pilothouse.controlplane.certificates.paths import CertificatePaths


@dataclass
class Heard:
    """What was asked of the double: the request line and the headers."""

    line: str
    headers: dict[str, str] = field(default_factory=dict)


class Backend:
    """Answers by path: see `_answer`. Everything that it hears is kept."""

    def __init__(self) -> None:
        self.heard: list[Heard] = []
        self.port = 0
        self.smuggled = b""
        """Bytes that came over a connection whose upgrade was refused."""
        self.redirects_to = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().rstrip()
            line, *fields = head.split("\r\n")
            pairs = (each.partition(": ") for each in fields)
            asked = Heard(line, {name.lower(): value for name, _, value in pairs})
            self.heard.append(asked)
            await self._answer(asked, reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, asked: Heard, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = asked.line.split(" ")[1].partition("?")[0]
        if "upgrade" in asked.headers:
            await self._upgrade(path, asked, reader, writer)
        elif path.startswith("/containerLogs/"):
            await self._log(path, writer)
        else:
            await self._serve(path, asked, reader, writer)

    async def _upgrade(
        self, path: str, asked: Heard, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if path.endswith("/refused"):
            writer.write(b"HTTP/1.1 403 Forbidden\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\nno")
            self.smuggled += await reader.read()
            return
        if path.endswith("/redirected"):
            location = f"https://127.0.0.1:{self.redirects_to}/exec/default/other/c?command=id"
            writer.write(f"HTTP/1.1 302 Found\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n".encode())
            return
        protocol = asked.headers["upgrade"]
        writer.write(f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: {protocol}\r\n".encode())
        writer.write(b"Connection: Upgrade\r\n\r\nwelcome:")
        while data := await reader.read(4096):
            writer.write(data.upper())
            await writer.drain()

    async def _log(self, path: str, writer: asyncio.StreamWriter) -> None:
        if path.endswith("/broken"):
            writer.write(b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 4\r\n\r\noops")
            return
        if path.endswith("/absent"):
            writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
            return
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        writer.write(b"6\r\nfirst\n\r\n7\r\nsecond\n\r\n0\r\n\r\n")

    async def _serve(self, path: str, asked: Heard, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if path == "/moved":
            writer.write(b"HTTP/1.1 302 Found\r\nlocation: /there?x=1\r\ncontent-length: 0\r\n\r\n")
            return
        length = int(asked.headers.get("content-length", 0))
        body = await reader.readexactly(length) if length else b""
        text = f"{asked.line.split(' ')[0]} {path} ".encode() + body
        head = f"HTTP/1.1 200 OK\r\ncontent-length: {len(text)}\r\nx-own: 1\r\naccess-control-allow-origin: *\r\n\r\n"
        writer.write(head.encode() + text)


@asynccontextmanager
async def listening(host: str, tls: CertificatePaths | None = None) -> AsyncIterator[Backend]:
    backend = Backend()
    context = None
    if tls is not None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(tls.serving_cert, tls.serving_key)
    server = await asyncio.start_server(backend.handle, host, 0, ssl=context)
    backend.port = server.sockets[0].getsockname()[1]
    try:
        yield backend
    finally:
        server.close()
        server.close_clients() if hasattr(server, "close_clients") else None
