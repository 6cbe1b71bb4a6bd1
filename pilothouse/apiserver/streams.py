"""Response streams: closing, buffering of short streams, callbacks at the end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol, TypeAlias, runtime_checkable

from pilothouse.apiserver.http import Stream

Write: TypeAlias = Callable[[bytes], bool]
"""Writes a chunk at once. Returns False, and writes nothing, if the client must read first."""


@runtime_checkable
class PushStream(Protocol):
    """A stream that can also write chunks itself while the task that reads it waits for the next one."""

    def push_to(self, write: Write) -> None: ...


def push_to(stream: Stream, write: Write) -> None:
    """Let the stream write chunks itself, if it can and nothing between it and the client changes them."""
    while isinstance(stream, (UntilEnd, UntilCompleted)):
        stream = stream.stream
    if isinstance(stream, PushStream):
        stream.push_to(write)


async def close_stream(stream: AsyncIterator[object]) -> None:
    """Call `aclose` of the stream, if the stream has one."""
    close = getattr(stream, "aclose", None)
    if close is not None:
        await close()


async def whole_or_stream(stream: Stream, limit: int) -> bytes | Stream:
    """Return the whole content if it has at most `limit` bytes, else the stream from its beginning. Raises the
    errors of the stream."""
    taken, size = [], 0
    try:
        async for part in stream:
            taken.append(part)
            size += len(part)
            if size > limit:
                return _Resumed(taken, stream)
    except BaseException:
        await close_stream(stream)
        raise
    return b"".join(taken)


class _Resumed:
    """A stream with the items that were already taken from it."""

    __slots__ = ("_stream", "_taken")

    def __init__(self, taken: list[bytes], stream: Stream) -> None:
        self._taken = taken[::-1]
        self._stream = stream

    def __aiter__(self) -> _Resumed:
        return self

    async def __anext__(self) -> bytes:
        return self._taken.pop() if self._taken else await anext(self._stream)

    async def aclose(self) -> None:
        self._taken.clear()
        await close_stream(self._stream)


class UntilEnd:
    """A stream that calls `end` once: at its end, on failure, or when closed, even before it started.

    A generator could not do this: closing a generator that never started runs no code.
    """

    __slots__ = ("_end", "stream")

    def __init__(self, stream: Stream, end: Callable[[], object]) -> None:
        self.stream = stream
        self._end: Callable[[], object] | None = end

    def __aiter__(self) -> UntilEnd:
        return self

    async def __anext__(self) -> bytes:
        try:
            return await anext(self.stream)
        except BaseException:
            self._finish()
            raise

    async def aclose(self) -> None:
        self._finish()
        await close_stream(self.stream)

    def _finish(self) -> None:
        end, self._end = self._end, None
        if end is not None:
            end()


class UntilCompleted:
    """A stream that awaits `complete` once, under the same conditions as UntilEnd."""

    __slots__ = ("_complete", "stream")

    def __init__(self, stream: Stream, complete: Callable[[], Awaitable[None]]) -> None:
        self.stream = stream
        self._complete: Callable[[], Awaitable[None]] | None = complete

    def __aiter__(self) -> UntilCompleted:
        return self

    async def __anext__(self) -> bytes:
        try:
            return await anext(self.stream)
        except BaseException:
            await self._finish()
            raise

    async def aclose(self) -> None:
        try:
            await self._finish()
        finally:
            await close_stream(self.stream)

    async def _finish(self) -> None:
        complete, self._complete = self._complete, None
        if complete is not None:
            await complete()
