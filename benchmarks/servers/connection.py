"""The least of an HTTP/1.1 client: one connection, one request at a time, answers read whole or line by line."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import orjson

from servers.target import Target


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes

    def json(self) -> Any:
        return orjson.loads(self.body)


class Connection:
    def __init__(self, target: Target) -> None:
        self._target = target
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter

    async def __aenter__(self) -> Connection:
        host, port = self._target.address
        self._reader, self._writer = await asyncio.open_connection(host, port, ssl=self._target.tls, limit=1 << 22)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()

    async def call(self, method: str, path: str, body: bytes = b"", *, media: str = "application/json") -> Answer:
        self._send(method, path, body, media)
        status, headers = await self._head()
        if "content-length" in headers:
            return Answer(status, await self._reader.readexactly(int(headers["content-length"])))
        return Answer(status, b"".join([chunk async for chunk in self._chunks()]))

    async def stream(self, path: str) -> AsyncIterator[bytes]:
        """The chunks of a watch, as they come."""
        self._send("GET", path, b"", "application/json")
        status, _ = await self._head()
        if status != 200:
            raise RuntimeError(f"GET {path}: {status}")
        async for chunk in self._chunks():
            yield chunk

    def _send(self, method: str, path: str, body: bytes, media: str) -> None:
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {self._target.token}\r\n"
            f"Content-Type: {media}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self._writer.write(head.encode() + body)

    async def _head(self) -> tuple[int, dict[str, str]]:
        lines = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in lines[1:] if line)
        return int(lines[0].split()[1]), {name.lower(): value.strip() for name, _, value in pairs}

    async def _chunks(self) -> AsyncIterator[bytes]:
        while size := int(await self._reader.readuntil(b"\r\n"), 16):
            yield (await self._reader.readexactly(size + 2))[:-2]
        await self._reader.readexactly(2)
