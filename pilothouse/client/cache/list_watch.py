"""The source of a reflector: something that lists and watches one collection."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Protocol

from pilothouse.client.cache.watch_errors import is_expired
from pilothouse.client.rest.options import ListOptions
from pilothouse.client.rest.watch import WatchEvent
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import StatusError

PAGE_SIZE = 500


class RunningWatch(Protocol):
    """A running watch. Iteration ends when the server ends it, and raises ConnectionFailed when it breaks off."""

    def __aiter__(self) -> AsyncIterator[WatchEvent]: ...
    async def aclose(self) -> None: ...


class ListerWatcher(Protocol):
    async def list(self, options: ListOptions) -> Json: ...

    async def watch(self, options: ListOptions) -> RunningWatch:
        """Returns when the server has accepted the watch; raises the error it answered otherwise."""


@dataclass(frozen=True, slots=True)
class Listing:
    """A whole collection as of one resource version."""

    items: list[Json]
    resource_version: str
    paginated: bool


async def list_all(source: ListerWatcher, resource_version: str, page_size: int) -> Listing:
    """Lists in pages (none if the size is 0). If the pages expire midway, lists all at once instead."""
    options = ListOptions(resource_version=resource_version, limit=page_size)
    page = await source.list(options)
    items: list[Json] = page.get("items") or []
    token = page["metadata"].get("continue")
    paginated = bool(token)
    while token:
        try:
            page = await source.list(ListOptions(limit=page_size, continue_=token))
        except StatusError as error:
            if not is_expired(error):
                raise
            page = await source.list(ListOptions(resource_version=resource_version))
            items = []
        items.extend(page.get("items") or [])
        token = page["metadata"].get("continue")
    return Listing(items, page["metadata"].get("resourceVersion") or "", paginated)


@dataclass(frozen=True, slots=True)
class SelectedListWatch:
    """A part of a collection: what the selectors select of it."""

    source: ListerWatcher
    label_selector: str = ""
    field_selector: str = ""

    async def list(self, options: ListOptions) -> Json:
        return await self.source.list(self._selected(options))

    async def watch(self, options: ListOptions) -> RunningWatch:
        return await self.source.watch(self._selected(options))

    def _selected(self, options: ListOptions) -> ListOptions:
        return replace(options, label_selector=self.label_selector, field_selector=self.field_selector)
