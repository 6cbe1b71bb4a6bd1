"""The streams of answers: how one is closed, and how a filter learns that one is over."""

from __future__ import annotations

from collections.abc import Callable

from pilothouse.apiserver.http import Stream


async def close_stream(stream: Stream) -> None:
    """Not every stream has something to close."""
    close = getattr(stream, "aclose", None)
    if close is not None:
        await close()


class UntilEnd:
    """A stream that calls `end` once: when it has ended or failed, or is closed, even before it began.

    A generator could not tell the last: one that never began is closed without a word.
    """

    __slots__ = ("_end", "_stream")

    def __init__(self, stream: Stream, end: Callable[[], object]) -> None:
        self._stream = stream
        self._end: Callable[[], object] | None = end

    def __aiter__(self) -> UntilEnd:
        return self

    async def __anext__(self) -> bytes:
        try:
            return await anext(self._stream)
        except BaseException:
            self._over()
            raise

    async def aclose(self) -> None:
        self._over()
        await close_stream(self._stream)

    def _over(self) -> None:
        end, self._end = self._end, None
        if end is not None:
            end()
