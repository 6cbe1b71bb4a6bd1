"""A watch on the wire: one JSON event a line."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass

import orjson

from pilothouse.client.rest.errors import InvalidResponse
from pilothouse.client.rest.transport import HttpResponse
from pilothouse.machinery.objects import Json


@dataclass(slots=True)
class WatchEvent:
    """One line of a watch: ADDED, MODIFIED, DELETED, BOOKMARK, or ERROR with a Status as its object."""

    type: str
    object: Json


class RestWatch:
    """Iterates over the events as they come. Use as a context manager, or close it.

    An event that the server could not finish (the connection broke in its middle) is not shown.
    """

    def __init__(self, response: HttpResponse) -> None:
        self._response = response
        self._chunks: AsyncIterator[bytes] = response.chunks()
        self._rest = b""  # the beginning of a line whose end has not come
        self._lines: deque[bytes] = deque()

    def __aiter__(self) -> RestWatch:
        return self

    async def __anext__(self) -> WatchEvent:
        while not self._lines:
            await self._read()
        return _event(self._lines.popleft())

    async def aclose(self) -> None:
        await self._response.close()

    async def __aenter__(self) -> RestWatch:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    async def _read(self) -> None:
        try:
            chunk = await anext(self._chunks)
        except StopAsyncIteration:
            if not self._rest:
                raise
            self._lines.append(self._rest)
            self._rest = b""
            return
        *whole, rest = (self._rest + chunk).split(b"\n") if self._rest else chunk.split(b"\n")
        self._rest = rest
        self._lines.extend(filter(None, whole))


def _event(line: bytes) -> WatchEvent:
    try:
        event = orjson.loads(line)
        return WatchEvent(event["type"], event["object"])
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise InvalidResponse(f"not a watch event: {line[:200]!r}") from error
