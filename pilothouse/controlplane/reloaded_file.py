"""A file that somebody may change while the server runs: whoever uses it is told of its new content."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

_log = logging.getLogger(__name__)


class NotYet(ValueError):
    """The new content cannot be used at the moment, but perhaps later."""


class ReloadedFile:
    def __init__(
        self, path: Path, content: bytes, reload: Callable[[bytes], Awaitable[None]], *, every: float = 1.0
    ) -> None:
        """`content` is what is known of it. `reload` raises ValueError or NotYet for what cannot be used: all stays."""
        self._path = path
        self._content = content
        self._reload = reload
        self._every = every
        self._seen: tuple[int, ...] = ()

    async def run(self) -> None:
        """Follow the file for ever."""
        while True:
            await asyncio.sleep(self._every)
            await self.look()

    async def look(self) -> None:
        try:
            content = await asyncio.to_thread(self._read)
            if content is not None and content != self._content:
                await self._reload(content)
                self._content = content
                _log.info("reloaded %s", self._path)
        except NotYet as error:
            self._seen = ()  # it is looked at again, though it is the same
            _log.error("%s is not reloaded yet: %s", self._path, error)
        except (OSError, ValueError) as error:
            _log.error("%s is not reloaded: %s", self._path, error)

    def _read(self) -> bytes | None:
        """None where the file is the same as before."""
        found = os.stat(self._path)
        seen = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
        if seen == self._seen:
            return None
        content = self._path.read_bytes()
        self._seen = seen
        return content
