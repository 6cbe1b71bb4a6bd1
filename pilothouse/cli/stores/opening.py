"""Open the store that the command line names: a source to read all entries from, or a target to write them to."""

from __future__ import annotations

import argparse
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pilothouse.apiserver.storage.backup.model import BackupError, SavedEntry, Source, Target, entry_in
from pilothouse.apiserver.storage.backup.sqlite import SqliteSource, SqliteTarget
from pilothouse.apiserver.storage.backup.store_endpoint import PATH
from pilothouse.apiserver.storage.interface import Revision
from pilothouse.apiserver.storage.sqlite.directory import DataDirectory
from pilothouse.client.config.kubeconfig import load_kubeconfig
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.connect import connect
from pilothouse.controlplane.data_dir import STORE, DataDir
from pilothouse.controlplane.options.etcd import EtcdOptions
from pilothouse.controlplane.storage import open_etcd
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json

if TYPE_CHECKING:
    from pilothouse.apiserver.storage.etcd.store import EtcdStore

_ETCD_TIMEOUT = 10.0
"""Seconds to wait for etcd."""


@asynccontextmanager
async def opened_source(parsed: argparse.Namespace) -> AsyncIterator[Source]:
    """Open the source: --etcd-servers, then --data-dir, then the server of the kubeconfig."""
    if parsed.etcd_servers:
        async with etcd_source(parsed, parsed.etcd_servers.split(",")) as source:
            yield source
    elif parsed.data_dir is not None:
        with sqlite_source(parsed.data_dir, parsed.etcd_prefix, skip_damaged=parsed.skip_damaged) as source:
            yield source
    else:
        async with served_source(parsed.kubeconfig, parsed.context) as served:
            yield served


def sqlite_source(data_dir: Path, prefix: str, *, skip_damaged: bool = False) -> SqliteSource:
    """Open the store of a data directory. Raises BackupError, StorageError."""
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
    """Open an empty etcd. Raises NotEmpty, StorageError."""
    from pilothouse.apiserver.storage.backup.etcd import EtcdTarget

    async with opened_etcd(parsed, servers, prefix) as store:
        yield await EtcdTarget.open(store, prefix, told=_report_revision_raise)


@asynccontextmanager
async def sqlite_target(data_dir: Path) -> AsyncIterator[Target]:
    """Lock a data directory and open its empty store. Raises DataDirError, NotEmpty, StorageError, OSError."""
    lock = DataDir.open(data_dir)
    try:
        yield SqliteTarget(data_dir / STORE)
    finally:
        lock.close()


@asynccontextmanager
async def opened_etcd(parsed: argparse.Namespace, servers: Sequence[str], prefix: str) -> AsyncIterator[EtcdStore]:
    """Connect to etcd, without compaction. Raises BackupError, StorageError, StartFailed."""
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
    store = await open_etcd(options, timeout=_ETCD_TIMEOUT)
    try:
        yield store
    finally:
        await store.close()


def _report_revision_raise(now: Revision, wanted: Revision) -> None:
    print(
        f"etcd is at revision {now}: raising it to {wanted} by writes that leave no keys", file=sys.stderr, flush=True
    )


class CountedSource:
    """Source that counts the entries (`seen`) and fails if the store changes meanwhile."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.revision, self.prefix = source.revision, source.prefix
        self.seen = 0

    async def entries(self) -> AsyncIterator[SavedEntry]:
        """Yield every entry. Raises BackupError after the last entry if the store has changed since the first."""
        async for entry in self._source.entries():
            self.seen += 1
            yield entry
        if (now := await self.newest()) != self.revision:
            raise BackupError(
                f"the store changed during the copy, from revision {self.revision} to {now}: "
                "stop its servers and try again; the new store is still empty"
            )

    async def newest(self) -> Revision:
        return await self._source.newest()


class ServedSource:
    """Source that reads the store of a running server page by page, at the revision that was current at `open`."""

    def __init__(self, client: Client, first: Json) -> None:
        self.client = client
        self.revision: Revision = first["revision"]
        self.prefix: str = first["root"]

    @classmethod
    async def open(cls, client: Client) -> ServedSource:
        """Open a source. Raises BackupError if the server is not Pilothouse, StatusError, ConnectionFailed."""
        try:
            return cls(client, await client.get_json(PATH, {"prefix": "/nothing/"}))
        except NotFound:
            raise BackupError(
                "this server does not serve its store: name its etcd with --etcd-servers, "
                "or save its objects with `pilothouse snapshot save`"
            ) from None

    async def entries(self) -> AsyncIterator[SavedEntry]:
        async for entry in self.under(""):
            yield entry

    async def under(self, prefix: str, revision: Revision = 0) -> AsyncIterator[SavedEntry]:
        """Yield entries by key prefix, relative to the root, at `revision` (0: the revision of the source)."""
        params = {"revision": str(revision or self.revision), "prefix": prefix}
        while True:
            page = await self.client.get_json(PATH, params)
            for line in page["entries"]:
                yield entry_in(line)
            if not page["more"]:
                return
            params["after"] = page["entries"][-1]["key"]

    async def newest(self) -> Revision:
        page = await self.client.get_json(PATH, {"prefix": "/nothing/"})
        return int(page["revision"])


@asynccontextmanager
async def served_source(kubeconfig: Path | None, context: str) -> AsyncIterator[ServedSource]:
    """Open the store of the kubeconfig's server. Raises ConfigError, BackupError, StatusError, ConnectionFailed."""
    config = load_kubeconfig(kubeconfig, context=context)
    async with connect(replace(config, qps=0)) as client:
        yield await ServedSource.open(client)
