"""Watch protocol: one JSON event per line."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator

import orjson

from pilothouse.client import garbage_collection
from pilothouse.client.rest.errors import InvalidResponse
from pilothouse.client.rest.transport import HttpResponse
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

BUSY = 1 << 16  # chunks of this size indicate a long stream of events


@dataclass(slots=True)
class WatchEvent:
    """Event of a watch: ADDED, MODIFIED, DELETED, BOOKMARK, or ERROR with a Status as object.

    >>> async with await client.resource("v1", "namespaces").watch() as events:
    ...     event = await anext(events)
    >>> event.type, event.object["kind"]
    ('ADDED', 'Namespace')
    """

    type: str
    object: Json


class RestWatch:
    """Asynchronous iterator over the events of a watch. Use as a context manager, or call `aclose`.

    An event truncated by a broken connection is not delivered.

    >>> from pilothouse.client import RestWatch
    >>> watch: RestWatch = await client.resource("v1", "namespaces").watch()
    >>> async with watch:
    ...     print((await anext(watch)).type)
    ADDED
    """

    def __init__(self, response: HttpResponse) -> None:
        self._response = response
        self._chunks: AsyncIterator[bytes] = response.chunks()
        self._rest = b""  # incomplete last line
        self._events: deque[WatchEvent] = deque()
        self._broken: InvalidResponse | None = None  # raised after the preceding events were delivered

    def __aiter__(self) -> RestWatch:
        return self

    async def __anext__(self) -> WatchEvent:
        while not self._events:
            if self._broken is not None:
                raise self._broken
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
        return self._events.popleft()

    async def aclose(self) -> None:
        """End the watch and close its connection."""
        await self._response.close()

    async def __aenter__(self) -> RestWatch:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    def _parse(self, lines: list[bytes]) -> None:
        try:
            for line in lines:
                if line:
                    self._events.append(_decode_event(line))
        except InvalidResponse as error:
            self._broken = error


def _decode_event(line: bytes) -> WatchEvent:
    try:
        event = orjson.loads(line)
        return WatchEvent(event["type"], event["object"])
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise InvalidResponse(f"not a watch event: {line[:200]!r}") from error
