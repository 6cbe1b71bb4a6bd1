"""Where a server has the shared keys from, and how it follows them.

Wherever they come from, they are in the data directory, too: everything that needs them reads them there, and sees when
they change.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

from pilothouse.apiserver.storage.errors import StorageError
from pilothouse.apiserver.storage.interface import Store
from pilothouse.controlplane.certificates.paths import CertificateError
from pilothouse.controlplane.options.completion import CompletedOptions
from pilothouse.controlplane.shared_keys.directory import KeyDirectory, SharedKeys, write_keys
from pilothouse.machinery.files import PUBLIC, write_atomically

log = logging.getLogger(__name__)

_TRY_AGAIN = 5.0
_ORIGIN = "pki/shared-from"


class KeySource(Protocol):
    async def current(self) -> SharedKeys:
        """Return the keys; where there are none, they are made. Raises CertificateError, StorageError, OSError."""

    async def changed(self) -> None:
        """Return when the keys may be others than `current` returned. Raises StorageError, OSError."""


class OwnKeys(KeyDirectory):
    """The keys of a server that shares them with nobody: what makes its certificates makes them as well."""


def key_source(options: CompletedOptions, store: Store | None) -> KeySource:
    """Without a `store` there is none that could be shared. Raises CertificateError, OSError."""
    data_dir = Path(options.pilothouse.data_dir)
    if options.replicas.pki_dir:
        return KeyDirectory(Path(options.replicas.pki_dir))
    if store is not None and are_in_the_store(options):
        from pilothouse.controlplane.shared_keys.stored import StoredKeys

        return StoredKeys(store, options.etcd.prefix, data_dir, options.replicas.join_token)
    return OwnKeys(data_dir / "pki")


def are_in_the_store(options: CompletedOptions) -> bool:
    """Whoever gives the client CA and the key of tokens, as kube-apiserver wants it, sees to the rest as well."""
    if not options.etcd.capabilities.shared or options.replicas.pki_dir:
        return False
    given = options.authentication.client_ca_file and options.misc.service_account_signing_key_file
    return bool(options.replicas.join_token) or not given


async def settle(source: KeySource, data_dir: Path) -> None:
    """Bring the keys into the data directory. Raises CertificateError, StorageError, OSError."""
    if not isinstance(source, OwnKeys):
        await asyncio.to_thread(write_keys, await source.current(), data_dir / "pki")
    _note_origin(source, data_dir)


def noted_directory(data_dir: Path) -> KeyDirectory | None:
    """Return the shared directory that the keys of a data directory are from; None if they are from none."""
    note = data_dir / _ORIGIN
    return KeyDirectory(Path(note.read_text(encoding="utf-8"))) if note.exists() else None


def _note_origin(source: KeySource, data_dir: Path) -> None:
    """Whoever is to change the keys must do it where they are from."""
    note = data_dir / _ORIGIN
    if not isinstance(source, KeyDirectory) or isinstance(source, OwnKeys):
        note.unlink(missing_ok=True)
    elif not note.exists() or note.read_text(encoding="utf-8") != str(source):
        write_atomically(note, str(source).encode(), mode=PUBLIC)


async def follow(
    source: KeySource, data_dir: Path, use: Callable[[], Awaitable[None]], *, at_least_every: float
) -> None:
    """Whenever the keys change, and every so many seconds, bring them into the data directory and `use` them. What
    fails is logged and tried again."""
    is_due = False
    while True:
        try:
            if not is_due and await _changed_within(source, at_least_every):
                log.info("The shared keys have changed.")
            is_due = True
            await settle(source, data_dir)
            await use()
            is_due = False
        except (CertificateError, StorageError, OSError, ValueError) as error:
            log.error("The shared keys can not be followed at the moment: %s", error)
            await asyncio.sleep(_TRY_AGAIN)


async def _changed_within(source: KeySource, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await source.changed()
    except TimeoutError:
        return False
    return True
