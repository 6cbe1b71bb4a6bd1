"""ListerWatcher: the source of a reflector, with its paged list and its watch errors."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from http import HTTPStatus
from typing import Protocol, TypeAlias

from pilothouse.client.rest.errors import ConnectionRefused
from pilothouse.client.rest.options import ListOptions
from pilothouse.client.rest.watch import WatchEvent
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.failed_attempts import log_failed_attempt
from pilothouse.machinery.objects import Json
from pilothouse.machinery.server_errors import Timeout
from pilothouse.machinery.status_error import PilothouseError, StatusError, has_status_cause

logger = logging.getLogger(__name__)

PAGE_SIZE = 500


class OpenWatch(Protocol):
    """Open watch. Iteration ends when the server closes the watch and raises ConnectionFailed when the connection
    breaks."""

    def __aiter__(self) -> AsyncIterator[WatchEvent]: ...
    async def aclose(self) -> None: ...


class ListerWatcher(Protocol):
    async def list(self, options: ListOptions) -> Json: ...

    async def watch(self, options: ListOptions) -> OpenWatch:
        """Return when the server has accepted the watch. Raises the server's error otherwise."""


@dataclass(frozen=True, slots=True)
class Listing:
    """Complete collection at one resource version."""

    items: list[Json]
    resource_version: str
    paginated: bool


async def list_all(source: ListerWatcher, resource_version: str, page_size: int) -> Listing:
    """List in pages of `page_size` (0 = one page). If a continue token expires, list everything in one request."""
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
    """Restricts a source to the objects that match the selectors."""

    source: ListerWatcher
    label_selector: str = ""
    field_selector: str = ""

    async def list(self, options: ListOptions) -> Json:
        return await self.source.list(self._selected(options))

    async def watch(self, options: ListOptions) -> OpenWatch:
        return await self.source.watch(self._selected(options))

    def _selected(self, options: ListOptions) -> ListOptions:
        return replace(options, label_selector=self.label_selector, field_selector=self.field_selector)


WatchErrorHandler: TypeAlias = Callable[[str, Exception], None]
"""Callback with the reflector's name and the error that ended the watch. The reflector recovers by itself."""


class VeryShortWatch(PilothouseError):
    """The watch ended within one second without an event."""

    def __init__(self, name: str) -> None:
        super().__init__(f"very short watch: {name}: watch lasted less than a second and no items received")


def is_expired(error: BaseException) -> bool:
    return isinstance(error, StatusError) and error.code == HTTPStatus.GONE


def is_too_many_requests(error: BaseException) -> bool:
    return isinstance(error, StatusError) and error.code == HTTPStatus.TOO_MANY_REQUESTS


def is_too_large_resource_version(error: BaseException) -> bool:
    """Report whether the requested resource version is newer than the server's state."""
    if not isinstance(error, StatusError):
        return False
    if has_status_cause(error, "ResourceVersionTooLarge"):
        return True
    return isinstance(error, Timeout) and "Too large resource version" in error.message


def is_retriable(error: BaseException) -> bool:
    """Report whether the same watch can be retried without a list: connection refused or 429."""
    return isinstance(error, ConnectionRefused) or is_too_many_requests(error)


def log_watch_error(name: str, error: Exception) -> None:
    """Log the error; default WatchErrorHandler."""
    if is_expired(error):
        logger.debug("%s: watch closed: %s", name, error)
    else:
        log_failed_attempt(logger, error, "%s: failed to watch", name)
