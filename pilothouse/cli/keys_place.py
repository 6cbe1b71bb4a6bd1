"""The flags that say where the shared keys of a cluster are, and the way there."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pilothouse.controlplane.shared_keys.directory import KeyDirectory
    from pilothouse.controlplane.shared_keys.stored import StoredKeys

_PATIENCE = 10.0


def add_data_dir(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data-dir", type=Path, help="of a server of the cluster; that of 'serve' if not given")


def add_etcd(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the etcd of the cluster, as 'serve' is told of it")
    group.add_argument("--etcd-servers", default="", metavar="URLS")
    for name in ("cafile", "certfile", "keyfile"):
        group.add_argument(f"--etcd-{name}", default="", metavar="FILE")
    group.add_argument("--etcd-prefix", default="", metavar="PREFIX")


def data_dir_of(parsed: argparse.Namespace) -> Path:
    from pilothouse.controlplane.options.pilothouse import default_data_dir

    return Path(parsed.data_dir or default_data_dir()).expanduser().absolute()


@asynccontextmanager
async def stored_keys(parsed: argparse.Namespace) -> AsyncIterator[StoredKeys]:
    """The keys in etcd, for as long as the block lasts. Raises CertificateError, StorageError, OSError, StartFailed."""
    from dataclasses import replace

    from pilothouse.controlplane.certificates.errors import CertificateError
    from pilothouse.controlplane.options.etcd import EtcdOptions
    from pilothouse.controlplane.shared_keys.stored import StoredKeys
    from pilothouse.controlplane.storage import open_bare_store
    from pilothouse.machinery.flags.declare import build, flags_of
    from pilothouse.machinery.flags.flagset import parse

    if not parsed.etcd_servers:
        raise CertificateError("the keys of this cluster are in etcd: give --etcd-servers")
    names = ("servers", "cafile", "certfile", "keyfile", "prefix")
    given = [f"--etcd-{name}={value}" for name in names if (value := getattr(parsed, f"etcd_{name}"))]
    etcd = replace(build(EtcdOptions, parse(flags_of(EtcdOptions), given).values), compaction_interval=0.0)
    data_dir = data_dir_of(parsed)
    store = await open_bare_store(etcd, data_dir, timeout=_PATIENCE)
    try:
        yield StoredKeys(store, etcd.prefix, data_dir)
    finally:
        await store.close()


@asynccontextmanager
async def shared_keys(parsed: argparse.Namespace) -> AsyncIterator[StoredKeys | KeyDirectory]:
    """The keys where they are from: in etcd, in the directory that was given, or in that of the data directory."""
    from pilothouse.controlplane.shared_keys.directory import KeyDirectory
    from pilothouse.controlplane.shared_keys.source import kept_directory

    data_dir = data_dir_of(parsed)
    if parsed.pki_dir:
        yield KeyDirectory(parsed.pki_dir)
    elif (data_dir / "cluster.key").exists():
        async with stored_keys(parsed) as stored:
            yield stored
    else:
        yield kept_directory(data_dir)
