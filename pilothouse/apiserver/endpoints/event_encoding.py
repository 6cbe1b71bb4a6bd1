"""Watch events on the wire: with whole objects, as tables, or with metadata only.

The bytes of an event are made once and shared by every watcher that wants the same form of it.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

from pilothouse.apiserver.beside_the_loop import WORTH_A_THREAD
from pilothouse.apiserver.endpoints import transform
from pilothouse.apiserver.endpoints.negotiation import Output
from pilothouse.apiserver.endpoints.scope import RequestScope
from pilothouse.apiserver.endpoints.serializers.interface import Serializer, View
from pilothouse.apiserver.endpoints.serializers.registry import JSON
from pilothouse.apiserver.http import Request
from pilothouse.apiserver.storage.cacher.events import EventType, WatchEvent
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import NotAcceptable
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import metadata


class EventEncoder(Protocol):
    def __call__(self, event: WatchEvent) -> bytes:
        """The event on the wire."""

    def is_quick(self, event: WatchEvent) -> bool:
        """Whether to encode it holds up nobody."""


def event_encoder(request: Request, scope: RequestScope, output: Output) -> EventEncoder:
    if output.convert is None:
        return _Whole(scope.view, output.serializer)
    if output.convert.kind == "Table":
        return _Tables(request, scope, output.convert, output.serializer)
    return _Metadata(request, scope, output.convert, output.serializer)


class _Whole:
    """Events with their objects as they are."""

    def __init__(self, view: View, serializer: Serializer) -> None:
        self._view = view
        self._serializer = serializer
        self._form = (serializer.media_type, view.kind)
        self._splices = serializer is JSON and view.convert is None

    def is_quick(self, event: WatchEvent) -> bool:
        if event.object.size <= WORTH_A_THREAD or event.is_encoded(self._form):
            return True
        return self._splices and event.object.has_body

    def __call__(self, event: WatchEvent) -> bytes:
        return event.encoded(self._form, self._make)

    def _make(self, event: WatchEvent) -> bytes:
        piece = self._serializer.piece(event.object, self._view)
        return self._serializer.event(event.type, self._serializer.whole(piece, self._view))


@dataclass(slots=True)
class _Metadata:
    """Events with the metadata of their objects only.

    Where a list was asked for, which no event is, with whole objects.
    """

    request: Request
    scope: RequestScope
    target: GroupVersionKind
    serializer: Serializer

    def is_quick(self, event: WatchEvent) -> bool:
        return event.object.size <= WORTH_A_THREAD or event.is_encoded(self._form)

    def __call__(self, event: WatchEvent) -> bytes:
        return event.encoded(self._form, self._make)

    @property
    def _form(self) -> Hashable:
        return (self.serializer.media_type, self.scope.view.kind, self.target)

    def _make(self, event: WatchEvent) -> bytes:
        try:
            obj = transform.single(self.request, self.scope, self.target, event.object)
        except NotAcceptable:
            obj = self.scope.view.object(event.object)
        return self.serializer.event(event.type, self.serializer.encode(obj))


@dataclass(slots=True)
class _Tables:
    """Events as tables. The first has the column definitions, the others need them not."""

    request: Request
    scope: RequestScope
    target: GroupVersionKind
    serializer: Serializer
    headers: bool = True

    def __post_init__(self) -> None:
        transform.include_object(self.request)

    def is_quick(self, event: WatchEvent) -> bool:
        return event.object.size <= WORTH_A_THREAD

    def __call__(self, event: WatchEvent) -> bytes:
        obj = self.scope.view.object(event.object)
        revision = {"resourceVersion": metadata(obj)["resourceVersion"]}
        shown = [] if event.type is EventType.BOOKMARK else [obj]
        headers, self.headers = self.headers, False
        table = transform.table(self.request, self.scope, self.target, shown, revision, headers=headers)
        return self.serializer.event(event.type, self.serializer.encode(table))
