"""The store that the options ask for: etcd where servers are named, else the SQLite file in the data directory."""

from __future__ import annotations

from pilothouse.apiserver.storage.interface import Store
from pilothouse.controlplane.data_dir import DataDir
from pilothouse.controlplane.options.etcd import EtcdOptions


async def open_store(options: EtcdOptions, data_dir: DataDir) -> Store:
    """Raises StorageError, OSError. Only the store that is used is imported."""
    if not options.servers:
        from pilothouse.apiserver.storage.sqlite import SqliteStore

        return await SqliteStore.open(data_dir.store)
    from pilothouse.apiserver.storage.etcd import EtcdStore

    return await EtcdStore.connect(
        list(options.servers),
        ca=options.cafile,
        cert=options.certfile,
        key=options.keyfile,
        prefix=options.prefix,
    )
