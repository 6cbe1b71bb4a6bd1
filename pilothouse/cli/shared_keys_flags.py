"""Flags that locate the shared keys of a cluster, and access to the keys."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pilothouse.controlplane.shared_keys.directory import KeyDirectory
    from pilothouse.controlplane.shared_keys.stored import StoredKeys


def add_data_dir(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data-dir",
        type=Path,
        metavar="DIR",
        help="data directory of a server; default: the data directory of 'pilothouse serve'",
    )


def data_dir_of(parsed: argparse.Namespace) -> Path:
    from pilothouse.controlplane.options.pilothouse import default_data_dir

    return Path(parsed.data_dir or default_data_dir()).expanduser().absolute()


@asynccontextmanager
async def stored_keys(parsed: argparse.Namespace) -> AsyncIterator[StoredKeys]:
    """Open the keys in etcd for the duration of the block. Raises CertificateError, StorageError, OSError,
    StartFailed."""
    from pilothouse.cli.stores.opening import opened_etcd
    from pilothouse.controlplane.certificates.paths import CertificateError
    from pilothouse.controlplane.shared_keys.stored import StoredKeys

    if not parsed.etcd_servers:
        raise CertificateError("the keys of this cluster are in etcd: name the etcd with --etcd-servers")
    async with opened_etcd(parsed, parsed.etcd_servers.split(","), parsed.etcd_prefix) as store:
        yield StoredKeys(store, parsed.etcd_prefix, data_dir_of(parsed))


@asynccontextmanager
async def shared_keys(parsed: argparse.Namespace) -> AsyncIterator[StoredKeys | KeyDirectory]:
    """Open the keys: in --pki-dir, in the directory noted in --data-dir, in etcd, or in --data-dir itself."""
    from pilothouse.controlplane.shared_keys.directory import KeyDirectory
    from pilothouse.controlplane.shared_keys.source import noted_directory

    data_dir = data_dir_of(parsed)
    if directory := KeyDirectory(parsed.pki_dir) if parsed.pki_dir else noted_directory(data_dir):
        yield directory
    elif (data_dir / "cluster.key").exists():
        async with stored_keys(parsed) as stored:
            yield stored
    else:
        yield KeyDirectory(data_dir / "pki")
