"""Shared keys in a directory that all servers of a cluster see: the first that comes makes them.

Whoever writes holds a lock, so that of two servers that start at once one makes the keys and the other reads them. Who
finds all files there needs neither the lock nor the right to write: a mounted Secret will do.
"""

from __future__ import annotations

import asyncio
import logging
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pilothouse.apiserver.file_watch import FileWatch
from pilothouse.controlplane.certificates.errors import CertificateError
from pilothouse.controlplane.shared_keys.keys import NAMES, SharedKeys, are_complete, completed, read_keys, write_keys
from pilothouse.machinery.platform import effective_user
from pilothouse.machinery.platform.held_file import locked
from pilothouse.machinery.whole_files import make_directory

log = logging.getLogger(__name__)

_LOOK_EVERY = 1.0


class KeyDirectory:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._watch: FileWatch | None = None

    def __str__(self) -> str:
        return str(self._path)

    async def current(self) -> SharedKeys:
        """Return the keys; those that are missing are made. Raises CertificateError, OSError."""
        self._watch = self._new_watch()
        return await asyncio.to_thread(self._current)

    async def known(self) -> SharedKeys:
        """Return the keys, and make none. Raises CertificateError where some are missing, OSError."""
        found = await asyncio.to_thread(read_keys, self._path)
        if not are_complete(found):
            raise CertificateError(f"there are no shared keys in {self}")
        return found

    async def change(self, change: Callable[[SharedKeys], SharedKeys]) -> SharedKeys:
        """Put in place what `change` makes of the keys, and return it. Raises what `change` raises, CertificateError
        where there are none, OSError."""
        await self.known()

        def write() -> SharedKeys:
            with self._locked():
                changed = change(read_keys(self._path))
                write_keys(changed, self._path)
            return changed

        return await asyncio.to_thread(write)

    async def changed(self) -> None:
        """Return when the files are others than at the last call of `current`, or of this, whichever was the first."""
        self._watch = watch = self._watch or self._new_watch()
        await watch.wait(every=_LOOK_EVERY)

    def _new_watch(self) -> FileWatch:
        return FileWatch([self._path / name for name in NAMES])

    def _current(self) -> SharedKeys:
        found = read_keys(self._path) if self._path.exists() else {}
        if not are_complete(found):
            try:
                with self._locked():
                    made = completed(read_keys(self._path), self._path)
                    write_keys(made, self._path)
            except PermissionError as error:
                raise CertificateError(
                    f"the shared keys in {self} are not all there and can not be made: {error}"
                ) from None
            found = made
        self._warn_of_open_keys(found)
        return found

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock until the block ends, or the process does in whatever way."""
        make_directory(self._path)
        with locked(self._path / ".lock"):
            yield

    def _warn_of_open_keys(self, keys: SharedKeys) -> None:
        if effective_user() is None:  # files have no modes
            return
        for path in (self._path / name for name in keys if name.endswith(".key")):
            if (mode := stat.S_IMODE(path.stat().st_mode)) & stat.S_IRWXO:
                log.warning("%s has mode %04o: everybody on this machine can become anybody in the cluster", path, mode)
