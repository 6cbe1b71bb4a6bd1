"""Periodic work: a failed round is logged, and the next round retries."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from pilothouse.apiserver.storage.errors import StorageError
from pilothouse.machinery.status_error import StatusError

Sync: TypeAlias = Callable[[], Awaitable[None]]

_log = logging.getLogger(__name__)


async def try_once(sync: Sync, complaint: str) -> None:
    """The complaint comes before the reason in the log."""
    try:
        await sync()
    except (StatusError, StorageError, OSError, ValueError) as error:
        _log.error("%s: %s", complaint, error)


async def repeat(sync: Sync, *, every: float) -> None:
    """Run `sync` periodically; the first run starts after one period. `sync` handles its own errors."""
    while True:
        await asyncio.sleep(every)
        await sync()
