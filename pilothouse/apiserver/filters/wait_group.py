"""Wait group: tracks current requests, so that shutdown can drain them and reject new ones."""

from __future__ import annotations

import asyncio

from pilothouse.apiserver.http import Filter, Handler, Request, Response
from pilothouse.machinery.server_errors import ServiceUnavailable


class WaitGroup:
    """Counts requests that are not long-running. A closed group accepts no requests."""

    def __init__(self) -> None:
        self.count = 0
        self.closed = False
        self._empty: asyncio.Event | None = None  # set while a caller waits

    def enter(self) -> None:
        self.count += 1

    def leave(self) -> None:
        self.count -= 1
        if self._empty is not None and self.count == 0:
            self._empty.set()
            self._empty = None

    def close(self) -> None:
        self.closed = True

    async def drain(self, timeout: float) -> bool:
        """Close the group and wait. Return whether all requests ended in time."""
        self.close()
        return await self.wait(timeout)

    async def wait(self, timeout: float | None = None) -> bool:
        """Return whether all requests ended in time."""
        try:
            async with asyncio.timeout(timeout):
                if self.count:
                    self._empty = self._empty or asyncio.Event()
                    await self._empty.wait()
        except TimeoutError:
            return False
        return True


def with_wait_group(group: WaitGroup) -> Filter:
    def wrap(handler: Handler) -> Handler:
        async def count(request: Request) -> Response:
            if group.closed:
                raise ServiceUnavailable("apiserver is shutting down", details={"retryAfterSeconds": 1})
            if request.info.is_long_running:
                return await handler(request)
            group.enter()
            try:
                return await handler(request)
            finally:
                group.leave()

        return count

    return wrap
