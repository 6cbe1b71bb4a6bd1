"""Source of the shared keys, and propagation of changes.

The data directory always holds a copy of the keys. All other code reads the copy and detects its changes.
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
        """Return the keys; create missing keys. Raises CertificateError, StorageError, OSError."""

    async def changed(self) -> None:
        """Wait until the keys may differ from the result of `current`. Raises StorageError, OSError."""


class OwnKeys(KeyDirectory):
    """Keys of a single server. `ensure_certificates` creates the keys."""


def key_source(options: CompletedOptions, store: Store | None) -> KeySource:
    """Return the key source that the options select. Without a `store`, keys in the store are not an option.

    Raises CertificateError, OSError.
    """
    data_dir = Path(options.pilothouse.data_dir)
    if options.replicas.pki_dir:
        return KeyDirectory(Path(options.replicas.pki_dir))
    if store is not None and are_in_the_store(options):
        from pilothouse.controlplane.shared_keys.stored import StoredKeys

        return StoredKeys(store, options.etcd.prefix, data_dir, options.replicas.join_token)
    return OwnKeys(data_dir / "pki")


def are_in_the_store(options: CompletedOptions) -> bool:
    """Report whether the keys are in the store. With --client-ca-file and --service-account-signing-key-file, the user
    distributes the keys."""
    if not options.etcd.capabilities.shared or options.replicas.pki_dir:
        return False
    given = options.authentication.client_ca_file and options.misc.service_account_signing_key_file
    return bool(options.replicas.join_token) or not given


async def settle(source: KeySource, data_dir: Path) -> None:
    """Copy the keys into the data directory, and record a shared directory as their origin.

    Raises CertificateError, StorageError, OSError.
    """
    if not isinstance(source, OwnKeys):
        await asyncio.to_thread(write_keys, await source.current(), data_dir / "pki")
    note = data_dir / _ORIGIN
    if not isinstance(source, KeyDirectory) or isinstance(source, OwnKeys):
        note.unlink(missing_ok=True)
    elif not note.exists() or note.read_text(encoding="utf-8") != str(source):
        write_atomically(note, str(source).encode(), mode=PUBLIC)


def noted_directory(data_dir: Path) -> KeyDirectory | None:
    """Return the shared directory recorded as the origin of the keys; None without a record."""
    note = data_dir / _ORIGIN
    return KeyDirectory(Path(note.read_text(encoding="utf-8"))) if note.exists() else None


async def follow(
    source: KeySource, data_dir: Path, use: Callable[[], Awaitable[None]], *, at_least_every: float
) -> None:
    """Copy the keys and call `use` after every change, and at least every `at_least_every` seconds. Errors are logged
    and retried."""
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
