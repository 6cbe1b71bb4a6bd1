"""Upgrades: detection, and the upgraded connection as reader and writer."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from pilothouse.apiserver.http import Request
from pilothouse.machinery.dataclass import dataclass


def is_upgrade(request: Request) -> bool:
    return any(name == b"connection" and b"upgrade" in value.lower() for name, value in request.headers)


@dataclass(frozen=True, slots=True)
class RawConnection:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


def raw_connection(transport: asyncio.Transport, received: bytes) -> RawConnection:
    """Take over the connection. The reader starts with data received after the upgrade request."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(loop=loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    protocol.connection_made(transport)
    transport.set_protocol(protocol)
    if received:
        reader.feed_data(received)
    transport.resume_reading()
    return RawConnection(reader, asyncio.StreamWriter(transport, protocol, reader, loop))


async def until_one_ends(*works: Coroutine[Any, Any, None]) -> None:
    """Run the coroutines concurrently until the first ends or fails; then cancel the others."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
