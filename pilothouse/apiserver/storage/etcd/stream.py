"""A watch on one etcd member: batches in order from a revision, until the connection breaks.

etcd does not report compacted events directly behind the start: after a compaction to revision 7, a watch from 7 is
granted although the delete at revision 7 is gone. So a watch after 6 starts at 6, where etcd must have everything, and
drops the surplus. Only if no newer revision is known does the watch start at 7: then etcd streams new events at once,
without its 100 ms scan for old ones.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import grpc
from aetcd import rpc

from pilothouse.apiserver.storage.errors import Compacted, StorageError, Unavailable
from pilothouse.apiserver.storage.etcd import messages
from pilothouse.apiserver.storage.etcd.client import REQUEST_TIMEOUT, EtcdClient, EtcdEndpoint, Message
from pilothouse.apiserver.storage.etcd.failures import failure_of
from pilothouse.apiserver.storage.etcd.messages import EtcdKeyRange
from pilothouse.apiserver.storage.interface import Batch, Event, Revision

# kube-apiserver's interval, and etcd's own interval for watches that have caught up.
_AGAIN_AFTER = 0.1

# Before these patch releases, a requested progress notification could overtake events (fixed in 3.4.25 and 3.5.8) or
# get lost (fixed in 3.4.31 and 3.5.13).
_FIXED_IN = {(3, 4): 31, (3, 5): 13}


class ProgressRequests:
    """Progress requests to watches, of which one is open at a time; repeated while callers wait.

    etcd ignores the request while a watch catches up, so it is repeated. A single task sends: gRPC ends a call with two
    concurrent writes.
    """

    def __init__(self, wanted: Callable[[], bool]) -> None:
        self._wanted = wanted
        self._asked = asyncio.Event()

    def ask(self) -> None:
        """Request progress as soon as a capable watch is open and idle."""
        self._asked.set()

    @contextmanager
    def put_to(self, watch: ServerWatch) -> Iterator[None]:
        """Within the block, request progress from the watch as wanted, if it `answers_progress`."""
        if not watch.answers_progress:
            yield
            return
        self.ask()
        asking = asyncio.create_task(self._keep_asking(watch), name="etcd watch progress")
        try:
            yield
        finally:
            asking.cancel()

    async def _keep_asking(self, watch: ServerWatch) -> None:
        while True:
            await self._asked.wait()
            while self._wanted():
                self._asked.clear()
                await watch.request_progress()
                with suppress(TimeoutError):
                    async with asyncio.timeout(_AGAIN_AFTER):
                        await self._asked.wait()
            self._asked.clear()


def answers_progress_requests(version: str) -> bool:
    """Return whether this etcd version answers progress requests correctly."""
    match = re.match(r"(\d+)\.(\d+)\.(\d+)", version)
    if match is None:
        return False
    major, minor, patch = map(int, match.groups())
    return (major, minor) > max(_FIXED_IN) or patch >= _FIXED_IN.get((major, minor), patch + 1)


# Makes a member without a leader end the watch instead of staying silent.
_REQUIRE_LEADER = (("hasleader", "true"),)


class ServerWatch:
    """Changes under `own`. One task reads; one task requests progress, after opening."""

    reached: Revision  # every event up to here was delivered
    _events: list[Event]  # events of an incomplete revision

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
        """Open the watch. Raises Unavailable or Compacted."""
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
        """Return the next events, or a progress batch. Raises Compacted or Unavailable."""
        while True:
            batch = self._take(await self._response())
            if batch is not None and batch.revision > self.reached:
                self.reached = batch.revision
                return batch

    async def request_progress(self) -> None:
        """Request a progress batch, from a member that `answers_progress`."""
        with suppress(StorageError, asyncio.InvalidStateError):  # the reader gets the error
            await self._write(messages.progress())

    def close(self) -> None:
        if self._call is not None:
            self._call.cancel()

    async def _create(self) -> bool:
        """Create the watch, and return whether no event can be missing."""
        late = self._client.seen > self.reached
        start = self.reached if late else self.reached + 1
        # A member that answers progress requests can watch a prefix. Otherwise only events show progress, and only a
        # watch of all keys sees every revision.
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
        # The header may have a revision whose events are still to come.
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
