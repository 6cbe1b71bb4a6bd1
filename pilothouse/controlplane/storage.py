"""The store that the options ask for: etcd where servers are named, else SQLite in the data directory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pilothouse.apiserver.storage.interface import Store
from pilothouse.controlplane.data_dir import STORE
from pilothouse.controlplane.errors import StartFailed
from pilothouse.controlplane.options.etcd import EtcdOptions

if TYPE_CHECKING:
    from pilothouse.apiserver.storage.etcd.store import EtcdStore


async def open_store(etcd: EtcdOptions, data_dir: Path, *, timeout: float) -> Store:
    """Raises StorageError, OSError, ValueError, StartFailed. Only the store that is used is imported."""
    return await encrypted(etcd, await open_bare_store(etcd, data_dir, timeout=timeout))


async def encrypted(etcd: EtcdOptions, store: Store) -> Store:
    """Return the store itself, or one that encrypts what it keeps there. Raises StorageError, OSError, ValueError."""
    if not (config := etcd.encryption_provider_config):
        return store
    from pilothouse.apiserver.storage.encryption.current import CurrentEncryption
    from pilothouse.apiserver.storage.encryption.store import EncryptingStore

    encryption = CurrentEncryption(Path(config), reload=etcd.encryption_reload)
    return await EncryptingStore.open(store, encryption)


async def open_bare_store(etcd: EtcdOptions, data_dir: Path, *, timeout: float) -> Store:
    if not etcd.servers:
        from pilothouse.apiserver.storage.sqlite.store import SqliteStore

        interval, fsync = etcd.compaction_interval, not etcd.unsafe_no_fsync
        return await SqliteStore.open(data_dir / STORE, compaction_interval=interval, fsync=fsync)
    return await open_etcd(etcd, timeout=timeout)


async def open_etcd(etcd: EtcdOptions, *, timeout: float) -> EtcdStore:
    """Raises StorageError, OSError, StartFailed."""
    try:
        from pilothouse.apiserver.storage.etcd.store import EtcdStore
    except ImportError as error:
        from pilothouse.machinery.installation import extra_command

        raise StartFailed(f"--etcd-servers needs packages that are not installed: {extra_command('etcd')}") from error
    return await EtcdStore.connect(
        etcd.servers,
        ca=etcd.cafile,
        cert=etcd.certfile,
        key=etcd.keyfile,
        prefix=etcd.prefix,
        compaction_interval=etcd.compaction_interval,
        lease_reuse=etcd.lease_reuse_duration,
        dial_timeout=timeout,
    )
