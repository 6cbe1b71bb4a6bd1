"""Shared keys in a directory that all servers of a cluster can read. The first server creates the keys.

    ca.crt  ca.key                       CA: every trusted certificate, and the issuing key
    front-proxy-ca.crt  -ca.key          the same for front proxies
    sa.pub  sa.key                       the same for service account tokens
    ca-next.key …                        the next issuing key, during a rotation
    ca-cross.crt                         the new CA's certificate signed by the old CA
    retired.crt                          certificates that are no longer trusted

A writer holds a lock, so that concurrent first starts create one set of keys. A reader of a complete set needs neither
the lock nor write permission: a mounted Secret works. Servers can run on every intermediate state of a write.
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
        """Return the keys; create missing keys. Raises CertificateError, OSError."""
        self._watch = self._new_watch()
        return await asyncio.to_thread(self._current)

    async def known(self) -> SharedKeys:
        """Return the keys without creating any. Raises CertificateError if keys are missing, and OSError."""
        keys = await asyncio.to_thread(read_keys, self._path)
        if not are_complete(keys):
            raise CertificateError(f"there are no shared keys in {self}")
        return keys

    async def change(self, change: Callable[[SharedKeys], SharedKeys]) -> SharedKeys:
        """Write the result of `change` and return the result. Raises CertificateError if keys are missing, OSError, and
        the exceptions of `change`."""
        await self.known()

        def write() -> SharedKeys:
            with self._locked():
                changed = change(read_keys(self._path))
                write_keys(changed, self._path)
            return changed

        return await asyncio.to_thread(write)

    async def changed(self) -> None:
        """Wait until the files differ from the state at the first call of `current` or `changed`."""
        self._watch = watch = self._watch or self._new_watch()
        await watch.wait(every=_LOOK_EVERY)

    def _new_watch(self) -> FileWatch:
        return FileWatch([self._path / name for name in NAMES])

    def _current(self) -> SharedKeys:
        keys = read_keys(self._path) if self._path.exists() else {}
        if not are_complete(keys):
            try:
                with self._locked():
                    new_keys = completed(read_keys(self._path), self._path)
                    write_keys(new_keys, self._path)
            except PermissionError as error:
                raise CertificateError(
                    f"the shared keys in {self} are not all there and can not be made: {error}"
                ) from None
            keys = new_keys
        self._warn_of_open_keys(keys)
        return keys

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock during the block. The system releases the lock of a dead process."""
        make_directory(self._path)
        with locked(self._path / ".lock"):
            yield

    def _warn_of_open_keys(self, keys: SharedKeys) -> None:
        if effective_user() is None:  # Windows: files have no modes
            return
        for path in (self._path / name for name in keys if name.endswith(".key")):
            if (mode := stat.S_IMODE(path.stat().st_mode)) & stat.S_IRWXO:
                log.warning("%s has mode %04o: everybody on this machine can become anybody in the cluster", path, mode)


SharedKeys: TypeAlias = Mapping[str, bytes]
"""file name -> content"""

CROSS: Final = "ca-cross.crt"
RETIRED: Final = "retired.crt"

NAMES: Final = (
    *("ca-next.key", "front-proxy-ca-next.key", "sa-next.key"),
    *("ca.key", "front-proxy-ca.key", "sa.key"),
    *(CROSS, RETIRED),
    *("ca.crt", "front-proxy-ca.crt", "sa.pub"),
)
"""Files in write order: a key is written before the certificate that makes the key trusted. A missing certificate can
be derived from its key."""

_NEEDED: Final = ("ca.crt", "front-proxy-ca.crt", "sa.key", "sa.pub")
"""Required files. A CA without its key is trusted, but cannot issue."""


def read_keys(folder: Path) -> SharedKeys:
    """Return the existing files. Raises OSError."""
    return {name: (folder / name).read_bytes() for name in NAMES if (folder / name).exists()}


def write_keys(keys: SharedKeys, folder: Path) -> None:
    """Replace the files by `keys`: write changed files, delete absent files. Keys are readable only by their owner.
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
    """Return the keys with missing keys added. Uses a temporary folder below `scratch`.

    Raises CertificateError for inconsistent keys, and OSError.
    """
    from tempfile import TemporaryDirectory

    from pilothouse.controlplane.certificates.keep import keep_shared_keys

    with TemporaryDirectory(dir=scratch, prefix=".keys-") as folder:
        write_keys(keys, Path(folder))
        keep_shared_keys(Path(folder))
        return read_keys(Path(folder))
