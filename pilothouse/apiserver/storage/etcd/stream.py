"""One watch on one member: batches in order, from a revision on, until the connection breaks.

etcd does not say when events right behind the start were compacted away: after a compaction to revision 7 a watch
from 7 on is granted, though the delete that was revision 7 is gone. So a watch behind 6 starts at 6, for which etcd
has to have everything, and drops what it was not asked for. Only when nothing newer is known does it start at 7:
etcd then hands out events as they happen, and need not look for old ones, which it does every 100 ms.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

import grpc
from aetcd import rpc

from pilothouse.apiserver.storage.errors import Compacted, StorageError, Unavailable
from pilothouse.apiserver.storage.etcd import messages
from pilothouse.apiserver.storage.etcd.client import REQUEST_TIMEOUT, EtcdClient, Message
from pilothouse.apiserver.storage.etcd.endpoint import EtcdEndpoint
from pilothouse.apiserver.storage.etcd.failures import failure_of
from pilothouse.apiserver.storage.etcd.keys import EtcdKeyRange
from pilothouse.apiserver.storage.etcd.progress import answers_progress_requests
from pilothouse.apiserver.storage.interface import Batch, Event, Revision

# Makes a member that has lost its leader end the watch, instead of keeping silent.
_REQUIRE_LEADER = (("hasleader", "true"),)


class ServerWatch:
    """The changes under `own`. Only one task may read it, and only one may request progress, once it is open."""

    reached: Revision  # every event up to here was handed out
    _events: list[Event]  # of a revision that has not been told to its end

    def __init__(self, client: EtcdClient, *, own: str, after: Revision) -> None:
        self.reached = after
        self.answers_progress = False
        self._client = client
        self._own = own
        self._own_bytes = own.encode()
        self._events = []
        self._endpoint: EtcdEndpoint = client.endpoint
        self._call: grpc.aio.StreamStreamCall | None = None

    async def open(self) -> None:
        """Raises Unavailable, Compacted."""
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT):
                self._client.ensure_open()
                try:
                    status = await self._client.answer(self._endpoint.status(rpc.StatusRequest()))
                except grpc.aio.AioRpcError as error:
                    raise self._failed(error) from None
                self.answers_progress = answers_progress_requests(str(status.version))
                while not await self._create():
                    self.close()
        except TimeoutError:
            raise self._broken(f"etcd at {self._endpoint.url} does not begin to watch") from None

    async def read(self) -> Batch:
        """The next events, or how far the watch has come without any. Raises Compacted, Unavailable."""
        while True:
            batch = self._take(await self._response())
            if batch is not None and batch.revision > self.reached:
                self.reached = batch.revision
                return batch

    async def request_progress(self) -> None:
        """Asks for a batch that says how far the watch has come, of a member that `answers_progress`."""
        with suppress(StorageError, asyncio.InvalidStateError):  # the reader learns of it
            await self._write(messages.progress())

    def close(self) -> None:
        if self._call is not None:
            self._call.cancel()

    async def _create(self) -> bool:
        """Whether the watch began such that nothing can be missing."""
        late = self._client.seen > self.reached
        start = self.reached if late else self.reached + 1
        # A member that answers can be asked about a few keys; otherwise only events tell how far the watch has come,
        # and every revision is told only to those who watch all keys.
        keys = EtcdKeyRange.under(self._own if self.answers_progress else "")
        self._client.ensure_open()
        self._call = self._endpoint.watch(metadata=_REQUIRE_LEADER)
        await self._write(messages.watch(keys, start=max(start, 1)))
        created = await self._response()
        self._take(created)
        return late or created.header.revision <= self.reached

    async def _write(self, request: Message) -> None:
        assert self._call is not None
        try:
            await self._client.answer(self._call.write(request))
        except grpc.aio.AioRpcError as error:
            raise self._failed(error) from None

    async def _response(self) -> Message:
        assert self._call is not None
        try:
            response = await self._client.answer(self._call.read())
        except grpc.aio.AioRpcError as error:
            raise self._failed(error) from None
        if response is grpc.aio.EOF:
            raise self._broken(f"etcd at {self._endpoint.url} ended the watch")
        self._client.saw(response.header.revision)
        return response

    def _take(self, response: Message) -> Batch | None:
        if response.canceled:
            if response.compact_revision:
                raise Compacted(self.reached, response.compact_revision)
            raise self._broken(f"etcd at {self._endpoint.url} cancelled the watch: {response.cancel_reason}")
        if response.created:
            return None
        if not response.events:
            return Batch(response.header.revision)
        self._events += self._wanted(response)
        if response.fragment:
            return None
        # The header may name a revision whose events are yet to come.
        events, self._events = tuple(self._events), []
        return Batch(response.events[-1].kv.mod_revision, events)

    def _wanted(self, response: Message) -> list[Event]:
        own, reached = self._own_bytes, self.reached
        return [
            messages.event_of(event)
            for event in response.events
            if event.kv.mod_revision > reached and event.kv.key.startswith(own)
        ]

    def _failed(self, error: grpc.aio.AioRpcError) -> Exception:
        self._client.avoid(self._endpoint)
        return failure_of(error, self._endpoint.url, wrote=False).error

    def _broken(self, message: str) -> Unavailable:
        self._client.avoid(self._endpoint)
        return Unavailable(message)
