"""`pilothouse migrate`: copy a store into an empty store of another kind."""

from __future__ import annotations

import argparse
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pilothouse.cli.arguments import CommandParser, add_etcd_arguments, run_command

if TYPE_CHECKING:
    from pilothouse.apiserver.storage.backup.model import Source, Target

_SQLITE, _ETCD = "sqlite:", "etcd:"


def main(arguments: Sequence[str]) -> int:
    """Return 0 if the copy is complete, 2 if the target is still empty."""
    parsed = _parser().parse_args(arguments)
    for store in (parsed.source, parsed.target):
        if not store.startswith((_SQLITE, _ETCD)):
            print(f'Error: invalid store "{store}": expected sqlite:DATA_DIR or etcd:URL[,URL…]', file=sys.stderr)
            return 2
    return run_command(_migrate(parsed))


def _parser() -> argparse.ArgumentParser:
    parser = CommandParser(
        prog="pilothouse migrate",
        description="Copy a store into an empty store. No server may use either store.",
        example="pilothouse migrate --from sqlite:./data --to etcd:http://10.0.0.1:2379",
    )
    for flag, name, role in (("--from", "source", "read"), ("--to", "target", "fill")):
        help_ = f"store to {role}: sqlite:DATA_DIR, or etcd:URL[,URL…]"
        parser.add_argument(flag, dest=name, required=True, metavar="STORE", help=help_)
    add_etcd_arguments(parser, servers=False)
    return parser


async def _migrate(parsed: argparse.Namespace) -> int:
    from pilothouse.cli.stores.opening import CountedSource

    async with _source(parsed) as source, _target(parsed) as target:
        counted = CountedSource(source)
        revision = await target.fill(counted, at_least=source.revision)
    print(f"Copied {counted.seen} keys of revision {source.revision} to {parsed.target}, now at revision {revision}.")
    print(f"{parsed.source} is unchanged: remove it after a server runs on the new store.")
    return 0


@asynccontextmanager
async def _source(parsed: argparse.Namespace) -> AsyncIterator[Source]:
    """Open the source; a SQLite store is locked against writers."""
    from pilothouse.cli.stores.opening import etcd_source, sqlite_source
    from pilothouse.controlplane.data_dir import DataDir

    if parsed.source.startswith(_ETCD):
        async with etcd_source(parsed, parsed.source.removeprefix(_ETCD).split(",")) as found:
            yield found
        return
    data_dir = Path(parsed.source.removeprefix(_SQLITE))
    with sqlite_source(data_dir, parsed.etcd_prefix) as source:
        lock = DataDir.open(data_dir)
        try:
            yield source
        finally:
            lock.close()


@asynccontextmanager
async def _target(parsed: argparse.Namespace) -> AsyncIterator[Target]:
    from pilothouse.cli.stores.opening import etcd_target, sqlite_target

    if parsed.target.startswith(_ETCD):
        async with etcd_target(parsed, parsed.target.removeprefix(_ETCD).split(","), parsed.etcd_prefix) as target:
            yield target
    else:
        async with sqlite_target(Path(parsed.target.removeprefix(_SQLITE))) as target:
            yield target
