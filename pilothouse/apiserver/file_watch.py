"""Reloading of files that may change while the server runs.

    watch = FileWatch(paths); watch.changed()          whether a file has changed since the last call
    await poll(check, every=1.0)                       the common loop of all reloading
    ReloadedFile(path, content, reload).run()          calls `reload` with new content

Polling by metadata works for every file system, renames, symlink swaps and mounted Secrets.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

_log = logging.getLogger(__name__)


async def poll(check: Callable[[], Awaitable[bool | None]], *, every: float) -> None:
    """Call `check` every `every` seconds until it returns True."""
    while True:
        await asyncio.sleep(every)
        if await check():
            return


class Polled(ABC):
    """Looks for changes every `every` seconds."""

    def __init__(self, every: float) -> None:
        self._every = every

    async def run(self) -> None:
        """Look for changes until cancelled."""
        await poll(self.look, every=self._every)

    @abstractmethod
    async def look(self) -> None: ...


class FileWatch:
    """Reports whether any of some files has changed since the last call.

    Files are hashed only if their metadata has changed.
    """

    def __init__(self, files: Iterable[Path]) -> None:
        self._files = tuple(files)
        self._metadata = self._stat()
        self._digest = self._hash()

    def changed(self) -> bool:
        metadata = self._stat()
        if metadata == self._metadata:
            return False
        self._metadata = metadata
        digest, before = self._hash(), self._digest
        self._digest = digest
        return digest != before

    async def wait(self, *, every: float) -> None:
        """Return when a file has changed."""
        await poll(lambda: asyncio.to_thread(self.changed), every=every)

    def _stat(self) -> list[tuple[int, int, int] | None]:
        return [_metadata(file) for file in self._files]

    def _hash(self) -> list[bytes | None]:
        return [_digest(file) for file in self._files]


def _metadata(file: Path) -> tuple[int, int, int] | None:
    try:
        stat = file.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


def _digest(file: Path) -> bytes | None:
    try:
        return hashlib.sha256(file.read_bytes()).digest()
    except OSError:
        return None


class NotYet(ValueError):
    """The new content cannot be used now; the next poll tries again."""


class ReloadedFile(Polled):
    """Calls `reload` with the content of a file whenever the content changes."""

    def __init__(
        self, path: Path, content: bytes, reload: Callable[[bytes], Awaitable[None]], *, every: float = 1.0
    ) -> None:
        """`content` is the content in use. `reload` raises ValueError or NotYet to keep the content in use."""
        super().__init__(every)
        self._path = path
        self._content = content
        self._reload = reload
        self._metadata: tuple[int, ...] = ()

    async def look(self) -> None:
        try:
            content = await asyncio.to_thread(self._read)
            if content is not None and content != self._content:
                await self._reload(content)
                self._content = content
                _log.info("reloaded %s", self._path)
        except NotYet as error:
            self._metadata = ()  # read the same file again
            _log.error("%s is not reloaded yet: %s", self._path, error)
        except (OSError, ValueError) as error:
            _log.error("%s is not reloaded: %s", self._path, error)

    def _read(self) -> bytes | None:
        """Return the content, or None if the metadata is unchanged."""
        stat = os.stat(self._path)
        metadata = (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns)
        if metadata == self._metadata:
            return None
        content = self._path.read_bytes()
        self._metadata = metadata
        return content
