"""A list as parts that are written one after the other.

Guarantees: beside the objects themselves no more than about two parts are held, however long the list is and however
slowly it is read; and the event loop is let go after each part. Objects that were never encoded in the form that is
asked for are encoded a part at a time, beside the loop where that takes long.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Protocol, TypeVar

from pilothouse.apiserver.endpoints.list_views import ListView
from pilothouse.apiserver.endpoints.serializers.interface import ListWriter
from pilothouse.apiserver.offload import offload_by_size
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.machinery.event_loop import yield_to_loop

PART = 256 * 1024
"""Bytes: large enough to be cheap, small enough to be sent while others wait. Only a single object may have more."""


async def list_parts(writer: ListWriter, view: ListView) -> AsyncIterator[bytes]:
    """Raises, before the first part or between two, whatever is wrong with an object."""
    frame = view.frame
    sizes: list[int] = []
    if writer.needs_sizes:
        for objects in slices(view.objects):
            sizes += map(len, await _pieces(writer, view, objects))
    yield writer.head(frame, sizes)
    first = True
    for objects in slices(view.objects):
        for part in writer.items(frame, await _pieces(writer, view, objects), first=first):
            yield part
        first = False
    yield writer.tail(frame, empty=first)


async def _pieces(writer: ListWriter, view: ListView, objects: Sequence[StoredObject]) -> list[bytes]:
    await yield_to_loop()  # it is the others' turn after each part
    return await offload_by_size(view.bytes_to_encode(writer, objects), view.pieces, writer, objects)


class _Sized(Protocol):
    @property
    def size(self) -> int: ...


T = TypeVar("T", bound=_Sized)


def slices(things: Sequence[T]) -> Iterator[Sequence[T]]:
    """Cut the things into slices, in order; none is larger than a part unless it is a single thing."""
    start = size = 0
    for end, thing in enumerate(things):
        size += thing.size
        if size > PART and end > start:
            yield things[start:end]
            start, size = end, thing.size
    if start < len(things):
        yield things[start:]


def whole_list(writer: ListWriter, view: ListView) -> bytes:
    """The list at once, for those who are not on the loop."""
    pieces = view.pieces(writer, view.objects)
    items = writer.items(view.frame, pieces, first=True) if pieces else ()
    head = writer.head(view.frame, map(len, pieces))
    return b"".join((head, *items, writer.tail(view.frame, empty=not pieces)))
