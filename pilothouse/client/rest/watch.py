"""A watch on the wire: one JSON event a line."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator

import orjson

from pilothouse.client import garbage_collection
from pilothouse.client.rest.errors import InvalidResponse
from pilothouse.client.rest.transport import HttpResponse
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

BUSY = 1 << 16  # a piece of this size is one of very many


@dataclass(slots=True)
class WatchEvent:
    """One line of a watch: ADDED, MODIFIED, DELETED, BOOKMARK, or ERROR with a Status as its object.

    >>> async with await client.resource("v1", "namespaces").watch() as events:
    ...     event = await anext(events)
    >>> event.type, event.object["kind"]
    ('ADDED', 'Namespace')
    """

    type: str
    object: Json


class RestWatch:
    """Iterates over the events as they come. Use as a context manager, or close it.

    An event that the server could not finish (the connection broke in its middle) is not shown.

    >>> from pilothouse.client import RestWatch
    >>> watch: RestWatch = await client.resource("v1", "namespaces").watch()
    >>> async with watch:
    ...     print((await anext(watch)).type)
    ADDED
    """

    def __init__(self, response: HttpResponse) -> None:
        self._response = response
        self._chunks: AsyncIterator[bytes] = response.chunks()
        self._rest = b""  # the beginning of a line whose end has not come
        self._events: deque[WatchEvent] = deque()
        self._broken: InvalidResponse | None = None  # is raised when the events before it have been shown

    def __aiter__(self) -> RestWatch:
        return self

    async def __anext__(self) -> WatchEvent:
        while not self._events:
            if self._broken is not None:
                raise self._broken
            await self._read()
        return self._events.popleft()

    async def aclose(self) -> None:
        """End the watch, and its connection."""
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
            chunk = b"\n"
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(chunk) < BUSY:
            self._parse(lines)
        else:
            with garbage_collection.paused(len(chunk)):
                self._parse(lines)

    def _parse(self, lines: list[bytes]) -> None:
        try:
            for line in lines:
                if line:
                    self._events.append(_event(line))
        except InvalidResponse as error:
            self._broken = error


def _event(line: bytes) -> WatchEvent:
    try:
        event = orjson.loads(line)
        return WatchEvent(event["type"], event["object"])
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise InvalidResponse(f"not a watch event: {line[:200]!r}") from error
