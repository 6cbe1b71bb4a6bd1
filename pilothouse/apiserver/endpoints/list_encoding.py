"""Encoding of lists: as objects, as metadata only, or as table rows, in parts.

Guarantees: besides the objects, at most about two parts are in memory, however long the list is and however slowly the
client reads. The event loop is released after each part. Objects without a cached encoding are encoded part by part, in
a thread if a part is large.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Hashable, Iterator, Sequence
from typing import Protocol, TypeAlias, TypeVar

from pilothouse.apiserver.endpoints import transform
from pilothouse.apiserver.endpoints.scope import RequestScope
from pilothouse.apiserver.endpoints.serializers.interface import ListFrame, ListWriter, View
from pilothouse.apiserver.http import Request
from pilothouse.apiserver.offload import offload_by_size
from pilothouse.apiserver.registry.operations import ListResult
from pilothouse.apiserver.registry.table import CREATED_AT
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import NotAcceptable
from pilothouse.machinery.event_loop import yield_to_loop
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json


@dataclass(frozen=True, slots=True)
class StoredObjectsView:
    """The objects themselves. Their encoded pieces are cached with them."""

    frame: ListFrame
    objects: Sequence[StoredObject]
    view: View

    def bytes_to_encode(self, writer: ListWriter, objects: Sequence[StoredObject]) -> int:
        """As ListWriter.bytes_to_encode."""
        return writer.bytes_to_encode(objects, self.view)

    def pieces(self, writer: ListWriter, objects: Sequence[StoredObject]) -> list[bytes]:
        view, piece = self.view, writer.piece
        return [piece(stored, view) for stored in objects]


@dataclass(frozen=True, slots=True)
class MadeItems:
    """Items made from the objects. An item is kept only if it is needed twice: for its size and for its bytes."""

    frame: ListFrame
    objects: Sequence[StoredObject]
    make: Callable[[StoredObject], Json]

    @property
    def _form(self) -> Hashable:
        return ("made", self.frame.fields["apiVersion"], self.frame.fields["kind"])

    def bytes_to_encode(self, writer: ListWriter, objects: Sequence[StoredObject]) -> int:
        form = self._form
        return sum(stored.size for stored in objects if not (writer.needs_sizes and stored.has_encoded(form)))

    def pieces(self, writer: ListWriter, objects: Sequence[StoredObject]) -> list[bytes]:
        def piece(stored: StoredObject) -> bytes:
            return writer.made_piece(self.make(stored))

        if writer.needs_sizes:
            form = self._form
            return [stored.encoded(form, piece) for stored in objects]
        return [piece(stored) for stored in objects]


ListView: TypeAlias = StoredObjectsView | MadeItems


async def list_view(
    request: Request, scope: RequestScope, target: GroupVersionKind | None, result: ListResult
) -> ListView:
    """Return the view. Raises NotAcceptable for the view of a single object, BadRequest for an invalid table
    request."""
    if target is None:
        view = scope.served.view
        fields = _fields(view.list_kind, view.kind.api_version, list_metadata(result, typed_items=view.typed_items))
        return StoredObjectsView(ListFrame(fields, view.item_prefix), result.objects, view)
    if target.kind == "Table":
        include = transform.include_object(request)
        frame = ListFrame(
            transform.table(scope, target, list_metadata(result)),
            null_when_empty=CREATED_AT in scope.served.columns,
        )
        objects = await _in_row_order(scope, result.objects)
        return MadeItems(frame, objects, lambda stored: transform.row(scope, target, stored.parse(), include))
    if target.kind != "PartialObjectMetadataList":
        what = f"the requested object is a list (*{scope.served.view.go_type}List)"
        raise NotAcceptable(f"you requested PartialObjectMetadata, but {what}")
    frame = ListFrame(_fields(target.kind, target.api_version, list_metadata(result)), null_when_empty=True)
    return MadeItems(frame, result.objects, lambda stored: transform.partial_metadata(scope, target, stored.parse()))


def _fields(kind: str, api_version: str, metadata: Json) -> Json:
    return {"kind": kind, "apiVersion": api_version, "metadata": metadata, "items": []}


async def _in_row_order(scope: RequestScope, objects: Sequence[StoredObject]) -> Sequence[StoredObject]:
    order = scope.served.row_order
    if order is None:
        return objects
    size = sum(stored.size for stored in objects)
    return await offload_by_size(size, sorted, objects, key=lambda stored: order(stored.parse()))


def list_metadata(result: ListResult, *, typed_items: bool = False) -> Json:
    """Return the metadata of a list. Lists without a store have no revision. Lists of custom resources always have
    `continue`."""
    meta: Json = {"resourceVersion": str(result.revision)} if result.revision else {}
    if result.continue_token or typed_items:
        meta["continue"] = result.continue_token
    if result.remaining:
        meta["remainingItemCount"] = result.remaining
    return meta


PART = 256 * 1024
"""Size of a part in bytes: large enough to be cheap, small enough to interleave with other clients. Only a part with
a single object may be larger."""


async def list_parts(writer: ListWriter, view: ListView) -> AsyncIterator[bytes]:
    """Yield the parts. Raises errors of objects before the first part or between two parts."""
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
    await yield_to_loop()
    return await offload_by_size(view.bytes_to_encode(writer, objects), view.pieces, writer, objects)


class _Sized(Protocol):
    @property
    def size(self) -> int: ...


T = TypeVar("T", bound=_Sized)


def slices(things: Sequence[T]) -> Iterator[Sequence[T]]:
    """Split a sequence into slices of at most PART bytes, in order. A single larger item is a slice of its own."""
    start = size = 0
    for end, thing in enumerate(things):
        size += thing.size
        if size > PART and end > start:
            yield things[start:end]
            start, size = end, thing.size
    if start < len(things):
        yield things[start:]


def whole_list(writer: ListWriter, view: ListView) -> bytes:
    """Return the list as one piece, for callers outside the event loop."""
    pieces = view.pieces(writer, view.objects)
    items = writer.items(view.frame, pieces, first=True) if pieces else ()
    head = writer.head(view.frame, map(len, pieces))
    return b"".join((head, *items, writer.tail(view.frame, empty=not pieces)))
