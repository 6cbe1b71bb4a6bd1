"""Requests to the store process: concurrent, over one channel, matched by number."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from itertools import count
from typing import Any

from pilothouse.apiserver.storage.errors import Unavailable
from pilothouse.apiserver.storage.interface import Revision
from pilothouse.apiserver.storage.remote.channel import Channel
from pilothouse.apiserver.storage.remote.messages import FEED, Message, unpack_error


class StoreRequests:
    """`unasked` gets pushed revisions and changes; `lost` is called when the store process is gone or the channel
    closed."""

    _waiting: dict[int, asyncio.Future[Any]]

    def __init__(self) -> None:
        self.unasked: Callable[[Revision, list[Message]], None] = lambda revision, events: None
        self.lost: Callable[[], None] = lambda: None
        self._waiting = {}
        self._numbers = count(FEED + 1)
        self._channel: Channel | None = None
        self._closed = False

    async def open(self, sock: socket.socket) -> None:
        self._channel = await Channel.over(sock, received=self._received, lost=self._connection_lost)

    def ensure_open(self) -> None:
        """Raise Unavailable if closed or lost."""
        if self._closed:
            raise Unavailable("the store is closed")
        if self._channel is None or not self._channel.is_open:
            raise Unavailable("the store's process is gone")

    async def ask(self, operation: str, *arguments: Any) -> Any:
        """Return the answer. Raises StorageError; requests to a process that ends meanwhile are uncertain."""
        self.ensure_open()
        assert self._channel is not None
        await self._channel.drained()
        self.ensure_open()
        number = next(self._numbers)
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        self._channel.send((number, operation, *arguments))
        try:
            return await answer
        finally:
            self._waiting.pop(number, None)

    async def close(self) -> None:
        """Refuse new requests, wait for pending answers, and close."""
        self._closed = True
        if self._waiting:
            await asyncio.wait(list(self._waiting.values()))
        if self._channel is not None:
            self._channel.close()

    def _received(self, message: Message) -> None:
        number, error, content = message
        if number == FEED:
            self.unasked(error, content)
        elif (waiting := self._waiting.get(number)) is None or waiting.done():
            return  # the caller has given up
        elif error is None:
            waiting.set_result(content)
        else:
            waiting.set_exception(unpack_error(error, content))

    def _connection_lost(self) -> None:
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(Unavailable("the store's process is gone", uncertain=True))
        self.lost()
