"""Store backends, and the store that the options select.

`BACKENDS` is the only table of backends. A new backend adds a folder below `apiserver/storage/` and a row here; all
other code reads the capabilities of the selected row (`EtcdOptions.capabilities`) instead of testing flags.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

from pilothouse.apiserver.storage.interface import Revision, Store, StoreCapabilities
from pilothouse.controlplane.data_dir import STORE
from pilothouse.controlplane.errors import StartFailed
from pilothouse.machinery.dataclass import dataclass

if TYPE_CHECKING:
    from pilothouse.apiserver.storage.etcd.store import EtcdStore
    from pilothouse.controlplane.options.etcd import EtcdOptions

Announce: TypeAlias = Callable[[Revision, Revision], None]
"""Receives (current revision, compacted revision) of a local store after every change of either."""


class OpenStore(Protocol):
    def __call__(
        self, etcd: EtcdOptions, data_dir: Path, *, timeout: float, announce: Announce
    ) -> Awaitable[Store]: ...


@dataclass(frozen=True, slots=True)
class StoreBackend:
    name: str
    """The value of --storage-backend."""
    capabilities: StoreCapabilities
    is_selected: Callable[[EtcdOptions], bool]
    open: OpenStore
    location: Callable[[EtcdOptions], str]
    """Names the store for the start message."""


async def open_store(etcd: EtcdOptions, data_dir: Path, *, timeout: float) -> Store:
    """Open the selected store, with encryption at rest. Import only the selected backend.

    Raises StorageError, OSError, ValueError, StartFailed.
    """
    return await encrypted(etcd, await open_bare_store(etcd, data_dir, timeout=timeout))


async def open_bare_store(
    etcd: EtcdOptions, data_dir: Path, *, timeout: float, announce: Announce = lambda current, compacted: None
) -> Store:
    """Open the selected store without encryption. Raises as `open_store`."""
    return await backend_of(etcd).open(etcd, data_dir, timeout=timeout, announce=announce)


async def encrypted(etcd: EtcdOptions, store: Store) -> Store:
    """Wrap the store in encryption if --encryption-provider-config is set. Raises StorageError, OSError, ValueError."""
    if not (config := etcd.encryption_provider_config):
        return store
    from pilothouse.apiserver.storage.encryption.store import CurrentEncryption, EncryptingStore

    encryption = CurrentEncryption(Path(config), reload=etcd.encryption_reload)
    return await EncryptingStore.open(store, encryption)


def backend_of(etcd: EtcdOptions) -> StoreBackend:
    return next(backend for backend in BACKENDS if backend.is_selected(etcd))


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


async def _open_sqlite(etcd: EtcdOptions, data_dir: Path, *, timeout: float, announce: Announce) -> Store:
    from pilothouse.apiserver.storage.sqlite.store import SqliteStore

    return await SqliteStore.open(
        data_dir / STORE,
        compaction_interval=etcd.compaction_interval,
        fsync=not etcd.unsafe_no_fsync,
        announce=announce,
    )


BACKENDS = (
    StoreBackend(
        "etcd3",
        StoreCapabilities(shared=True, local=False),
        is_selected=lambda etcd: bool(etcd.servers),
        open=lambda etcd, data_dir, *, timeout, announce: open_etcd(etcd, timeout=timeout),
        location=lambda etcd: ", ".join(etcd.servers),
    ),
    StoreBackend(
        "sqlite",
        StoreCapabilities(shared=False, local=True),
        is_selected=lambda etcd: True,
        open=_open_sqlite,
        location=lambda etcd: "sqlite",
    ),
)
"""In the order of selection: the first backend that the options select is used."""
