"""The source of a reflector: something that lists and watches one collection."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from http import HTTPStatus
from typing import Protocol, TypeAlias

from pilothouse.client.rest.errors import ConnectionFailed, ConnectionRefused
from pilothouse.client.rest.options import ListOptions
from pilothouse.client.rest.watch import WatchEvent
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json
from pilothouse.machinery.server_errors import Timeout
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


logger = logging.getLogger(__name__)

WatchErrorHandler: TypeAlias = Callable[[str, Exception], None]
"""Is told the reflector's name and why it lost its watch. For visibility only: the reflector goes on by itself."""


class VeryShortWatch(Exception):
    """The watch ended within a second and brought nothing."""

    def __init__(self, name: str) -> None:
        super().__init__(f"very short watch: {name}: watch lasted less than a second and no items received")


def is_expired(error: BaseException) -> bool:
    return isinstance(error, StatusError) and error.code == HTTPStatus.GONE


def is_too_many_requests(error: BaseException) -> bool:
    return isinstance(error, StatusError) and error.code == HTTPStatus.TOO_MANY_REQUESTS


def is_too_large_resource_version(error: BaseException) -> bool:
    """The server has not come as far as the version asked for."""
    if not isinstance(error, StatusError):
        return False
    causes = (error.details or {}).get("causes") or []
    if any(cause.get("reason") == "ResourceVersionTooLarge" for cause in causes):
        return True
    return isinstance(error, Timeout) and "Too large resource version" in error.message


def is_retriable(error: BaseException) -> bool:
    """The server is down or asks for patience: the same watch will most likely work later, without a list."""
    return isinstance(error, ConnectionRefused) or is_too_many_requests(error)


def log_watch_error(name: str, error: Exception) -> None:
    """The watch error handler that is used when no other is set."""
    if is_expired(error):
        logger.debug("%s: watch closed: %s", name, error)
    elif isinstance(error, (StatusError, ConnectionFailed, VeryShortWatch)):
        logger.warning("%s: failed to watch: %s", name, error)
    else:
        logger.error("%s: failed to watch", name, exc_info=error)
