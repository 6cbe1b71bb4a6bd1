"""Shared keys in a directory that all servers of a cluster see: the first that comes makes them.

Whoever writes holds a lock, so that of two servers that start at once one makes the keys and the other reads them. Who
finds all files there needs neither the lock nor the right to write: a mounted Secret will do.
"""

from __future__ import annotations

import asyncio
import logging
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeAlias

from pilothouse.apiserver.file_watch import FileWatch
from pilothouse.controlplane.certificates.paths import CertificateError
from pilothouse.machinery.files import PRIVATE, PUBLIC, locked, make_directory, write_atomically
from pilothouse.machinery.platform import effective_user

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


SharedKeys: TypeAlias = Mapping[str, bytes]
"""The content of the files by their names."""

CROSS: Final = "ca-cross.crt"
RETIRED: Final = "retired.crt"

NAMES: Final = (
    *("ca-next.key", "front-proxy-ca-next.key", "sa-next.key"),
    *("ca.key", "front-proxy-ca.key", "sa.key"),
    *(CROSS, RETIRED),
    *("ca.crt", "front-proxy-ca.crt", "sa.pub"),
)
"""In the order in which they are written: a key is there before anybody is told to trust it, and a certificate that is
missing can be made from its key."""

_NEEDED: Final = ("ca.crt", "front-proxy-ca.crt", "sa.key", "sa.pub")
"""An authority whose key is elsewhere is trusted, and issues nothing."""


def read_keys(folder: Path) -> SharedKeys:
    """Return the files that are there. Raises OSError."""
    return {name: (folder / name).read_bytes() for name in NAMES if (folder / name).exists()}


def write_keys(keys: SharedKeys, folder: Path) -> None:
    """Make the files those of `keys`: what differs is written, keys for their owner only, and what is gone is deleted.
    Raises OSError."""
    make_directory(folder)
    before = read_keys(folder)
    for name in NAMES:
        if name in keys and keys[name] != before.get(name):
            write_atomically(folder / name, keys[name], mode=PRIVATE if name.endswith(".key") else PUBLIC)
    for name in before.keys() - keys.keys():
        (folder / name).unlink()


def are_complete(keys: SharedKeys) -> bool:
    return all(name in keys for name in _NEEDED)


def completed(keys: SharedKeys, scratch: Path) -> SharedKeys:
    """Return these keys and, made anew, those that are missing. They are made in a folder below `scratch`, which is
    gone afterwards. Raises CertificateError where they do not fit together, OSError."""
    from tempfile import TemporaryDirectory

    from pilothouse.controlplane.certificates.keep import keep_shared_keys

    with TemporaryDirectory(dir=scratch, prefix=".keys-") as folder:
        write_keys(keys, Path(folder))
        keep_shared_keys(Path(folder))
        return read_keys(Path(folder))
