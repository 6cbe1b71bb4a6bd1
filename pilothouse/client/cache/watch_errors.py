"""The answers of a reflector to an error: go back and list again, wait and go on, or give up this attempt."""

from __future__ import annotations

import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import TypeAlias

from pilothouse.client.rest.errors import ConnectionFailed, ConnectionRefused
from pilothouse.machinery.server_errors import Timeout
from pilothouse.machinery.status_error import StatusError

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
