"""Opening what the arguments name: a source to read all of a store from, a target to write all of one into."""

from __future__ import annotations

import argparse
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pilothouse.apiserver.storage.backup.model import BackupError, Source, Target
from pilothouse.apiserver.storage.backup.sqlite import SqliteSource, SqliteTarget
from pilothouse.apiserver.storage.sqlite.directory import DataDirectory
from pilothouse.controlplane.data_dir import STORE, DataDir
from pilothouse.controlplane.options.etcd import EtcdOptions
from pilothouse.controlplane.storage import open_etcd

if TYPE_CHECKING:
    from pilothouse.apiserver.storage.etcd.store import EtcdStore
    from pilothouse.apiserver.storage.interface import Revision

_PATIENCE = 10.0  # seconds, with an etcd that does not answer


@asynccontextmanager
async def opened_source(parsed: argparse.Namespace) -> AsyncIterator[Source]:
    """The store of --etcd-servers, of --data-dir, or of the server of the kubeconfig, whichever is named first."""
    if parsed.etcd_servers:
        async with etcd_source(parsed, parsed.etcd_servers.split(",")) as source:
            yield source
    elif parsed.data_dir is not None:
        with sqlite_source(parsed.data_dir, parsed.etcd_prefix, skip_damaged=parsed.skip_damaged) as found:
            yield found
    else:
        from pilothouse.cli.stores.served import served_source

        async with served_source(parsed.kubeconfig, parsed.context) as served:
            yield served


def sqlite_source(data_dir: Path, prefix: str, *, skip_damaged: bool = False) -> SqliteSource:
    """Raises BackupError, StorageError."""
    if not (data_dir / STORE / DataDirectory.FILE).exists():
        raise BackupError(f"{data_dir} has no store: if its server uses etcd, add --etcd-servers")
    return SqliteSource.open(data_dir / STORE, prefix, skip_damaged=skip_damaged)


@asynccontextmanager
async def etcd_source(parsed: argparse.Namespace, servers: Sequence[str]) -> AsyncIterator[Source]:
    from pilothouse.apiserver.storage.backup.etcd import EtcdSource

    async with opened_etcd(parsed, servers, parsed.etcd_prefix) as store:
        yield await EtcdSource.open(store.client, parsed.etcd_prefix)


@asynccontextmanager
async def etcd_target(parsed: argparse.Namespace, servers: Sequence[str], prefix: str) -> AsyncIterator[Target]:
    """Raises NotEmpty, StorageError."""
    from pilothouse.apiserver.storage.backup.etcd import EtcdTarget

    async with opened_etcd(parsed, servers, prefix) as store:
        yield await EtcdTarget.open(store, prefix, told=_tell_of_raising)


@asynccontextmanager
async def sqlite_target(data_dir: Path) -> AsyncIterator[Target]:
    """No server can have the directory meanwhile. Raises DataDirError, NotEmpty, StorageError, OSError."""
    lock = DataDir.open(data_dir)
    try:
        yield SqliteTarget(data_dir / STORE)
    finally:
        lock.close()


@asynccontextmanager
async def opened_etcd(parsed: argparse.Namespace, servers: Sequence[str], prefix: str) -> AsyncIterator[EtcdStore]:
    """An etcd that is left as it is but for what the block does. Raises BackupError, StorageError, StartFailed."""
    options = EtcdOptions(
        servers=tuple(servers),
        cafile=parsed.etcd_cafile,
        certfile=parsed.etcd_certfile,
        keyfile=parsed.etcd_keyfile,
        prefix=prefix,
        compaction_interval=0,
    )
    if problems := list(options.validate()):
        raise BackupError("; ".join(problems))
    store = await open_etcd(options, timeout=_PATIENCE)
    try:
        yield store
    finally:
        await store.close()


def _tell_of_raising(now: Revision, wanted: Revision) -> None:
    print(
        f"etcd is at revision {now}: raising it to {wanted} by writes that leave no keys", file=sys.stderr, flush=True
    )
