"""One client of the cluster: a connection of its own, whose requests are timed, and whose watches go on and on."""

from __future__ import annotations

import asyncio
import random
import re
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass

import orjson
from servers.multiplexed import Answer, Lost, Multiplexed
from servers.target import Target

from cluster.recorder import Kind, Recorder, Scope
from pilothouse.machinery.objects import Json
from pilothouse.machinery.protobuf.codec import encode

PROTOBUF, JSON = "application/vnd.kubernetes.protobuf", "application/json"
PATCH = "application/strategic-merge-patch+json"
_REVISION = {
    PROTOBUF: re.compile(
        rb"[\x12\x32][\x01-\x14](\d+)[\x1a\x38]"
    ),  # in a list's metadata it is field 2, in an object's 6
    JSON: re.compile(rb'"resourceVersion":"(\d+)"'),
}
_WATCH_SECONDS = (300, 600)
"""As client-go's reflectors ask for."""


@dataclass
class Cluster:
    """What all clients share. The recorder is exchanged at the beginning of each phase."""

    target: Target
    tls: ssl.SSLContext
    media: str
    recorder: Recorder

    async def client(self) -> Api:
        return Api(self, await Multiplexed.connect(self.target, self.tls))


class Refused(Exception):
    """An answer that is no success."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")


class Api:
    def __init__(self, cluster: Cluster, connection: Multiplexed) -> None:
        self.cluster = cluster
        self._connection = connection

    def close(self) -> None:
        self._connection.close()

    async def get(self, path: str, kind: Kind) -> Answer:
        return await self._timed("GET", path, kind)

    async def write(self, verb: str, path: str, body: Json, resource: str, *, or_else: int = 0) -> Answer:
        """Does a POST, PUT or DELETE of one object. Raises Refused, unless it is the other status, and Lost."""
        kind = ({"POST": "create", "PUT": "update", "DELETE": "delete"}[verb], resource, Scope.OBJECT)
        as_protobuf = self.cluster.media == PROTOBUF and body.get("kind") != "DeleteOptions"
        data, media = (encode(body), PROTOBUF) if as_protobuf else (orjson.dumps(body), JSON)
        return await self._timed(verb, path, kind, data, media, or_else)

    async def patch(self, path: str, body: Json, resource: str) -> Answer:
        return await self._timed("PATCH", path, ("patch", resource, Scope.OBJECT), orjson.dumps(body), PATCH)

    def revision(self, data: bytes) -> str:
        """The resourceVersion of a list, an object or an event."""
        found = _REVISION[self.cluster.media].search(data)
        return found[1].decode() if found else "0"

    async def watch(self, path: str, query: str, revision: str, see: Callable[[bytes], None] | None = None) -> None:
        """Goes on for ever: when the server ends it, it goes on from the last revision seen."""
        first = random.uniform(10, _WATCH_SECONDS[1])
        while True:
            events = _Events(self.cluster, see)
            given = f"?watch=1&allowWatchBookmarks=true&resourceVersion={revision}&timeoutSeconds={int(first)}&{query}"
            try:
                await self._connection.call("GET", path + given, accept=self._accept(watch=True), sink=events.feed)
            except Lost as error:
                self.cluster.recorder.failures[f"watch: {error}"] += 1
                return
            revision = self.revision(events.last) if events.last else revision
            first = random.uniform(*_WATCH_SECONDS)
            self.cluster.recorder.renewed_watches += 1

    def _accept(self, *, watch: bool = False) -> str:
        stream = ";stream=watch" if watch else ""
        return JSON if self.cluster.media == JSON else f"{PROTOBUF}{stream},{JSON}"

    async def _timed(
        self, method: str, path: str, kind: Kind, body: bytes = b"", media: str = "", or_else: int = 0
    ) -> Answer:
        began, recorder = time.perf_counter(), self.cluster.recorder
        answer = await self._connection.call(method, path, body, accept=self._accept(), media=media)
        recorder.took(kind, time.perf_counter() - began)
        if not 200 <= answer.status < 300 and answer.status != or_else:
            recorder.failures[f"{kind[0]} {kind[1]}: {answer.status}"] += 1
            raise Refused(answer.status, f"{method} {path}: {answer.body[:300]!r}")
        return answer


class _Events:
    """Counts the events of a watch and keeps the last one."""

    __slots__ = ("_buffer", "_cluster", "_see", "last")

    def __init__(self, cluster: Cluster, see: Callable[[bytes], None] | None) -> None:
        self._cluster = cluster
        self._see = see
        self._buffer = b""
        self.last = b""

    def feed(self, data: bytes) -> None:
        data = self._buffer + data if self._buffer else data
        at, count, is_json = 0, 0, self._cluster.media == JSON
        while (end := _json_end(data, at) if is_json else _protobuf_end(data, at)) > 0:
            self.last = data[at:end]
            at, count = end, count + 1
            if self._see is not None:
                self._see(self.last)
        self._buffer = data[at:]
        self._cluster.recorder.events += count


def _json_end(data: bytes, at: int) -> int:
    return data.find(b"\n", at) + 1


def _protobuf_end(data: bytes, at: int) -> int:
    """An event is behind its length. 0 where it has not come to its end."""
    if len(data) < at + 4:
        return 0
    end = at + 4 + int.from_bytes(data[at : at + 4], "big")
    return end if end <= len(data) else 0


async def cancel(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
