"""Links between clients and a cluster: TCP ports whose connections tests delay and cut."""

from __future__ import annotations

import asyncio
from contextlib import suppress

_CHUNK, _CHUNKS_IN_FLIGHT = 65536, 64


class Link:
    """A port on loopback that forwards to the port of a server. TLS passes through unchanged."""

    def __init__(self, port: int) -> None:
        self.delay = 0.0
        """Seconds that data needs in each direction."""
        self._target = port
        self._is_cut = False
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._connections: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        self._server.close()
        await self._abort()

    async def cut(self, *, silent: bool) -> None:
        """Abort all connections and further ones; with `silent`, hold their data back instead."""
        if silent:
            self._flowing.clear()
        else:
            self._is_cut = True
            await self._abort()

    def heal(self) -> None:
        """Forward again, without delay."""
        self._is_cut = False
        self._flowing.set()
        self.delay = 0.0

    async def _abort(self) -> None:
        connections = list(self._connections)
        for connection in connections:
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            if not self._is_cut:
                await self._forward(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass  # either end is gone, or the link was cut: the other end is aborted below
        finally:
            self._connections.discard(task)
            writer.transport.abort()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        try:
            async with asyncio.TaskGroup() as directions:
                directions.create_task(self._pump(reader, far_writer))
                directions.create_task(self._pump(far_reader, writer))
        except* OSError:
            pass
        finally:
            far_writer.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Copy one direction. Chunks overlap: a delay does not limit the throughput."""
        loop = asyncio.get_running_loop()
        chunks: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(_CHUNKS_IN_FLIGHT)

        async def send() -> None:
            while True:
                due, data = await chunks.get()
                if (wait := due - loop.time()) > 0:
                    await asyncio.sleep(wait)
                await self._flowing.wait()
                if not data:
                    with suppress(OSError, RuntimeError):
                        writer.write_eof()
                    return
                writer.write(data)
                await writer.drain()

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(send())
            data = b"more"
            while data:
                data = await reader.read(_CHUNK)
                await chunks.put((loop.time() + self.delay, data))
