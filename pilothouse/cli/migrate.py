"""`pilothouse migrate`: all that one store holds moves into another one, which was empty."""

from __future__ import annotations

import argparse
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pilothouse.cli.stores.arguments import add_etcd_arguments, finished

if TYPE_CHECKING:
    from pilothouse.apiserver.storage.backup.model import Source, Target

_SQLITE, _ETCD = "sqlite:", "etcd:"


def main(arguments: Sequence[str]) -> int:
    """0 if everything is in the new store, 2 if that is as empty as before."""
    parsed = _parser().parse_args(arguments)
    for place in (parsed.source, parsed.target):
        if not place.startswith((_SQLITE, _ETCD)):
            print(f'Error: "{place}" is neither sqlite:DATA_DIR nor etcd:URL', file=sys.stderr)
            return 2
    return finished(_migrate(parsed))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pilothouse migrate",
        description="Move all that a store holds into another one, which must be empty. No server may run on either.",
    )
    for flag, name in (("--from", "source"), ("--to", "target")):
        help_ = "sqlite:DATA_DIR, or etcd: and the URLs of its members, comma separated"
        parser.add_argument(flag, dest=name, required=True, metavar="STORE", help=help_)
    add_etcd_arguments(parser, servers=False)
    return parser


async def _migrate(parsed: argparse.Namespace) -> int:
    from pilothouse.cli.stores.counting import CountedSource

    async with _source(parsed) as found, _target(parsed) as target:
        source = CountedSource(found)
        revision = await target.fill(source, at_least=found.revision)
    print(f"{source.seen} keys of revision {found.revision} are in {parsed.target}, which is at revision {revision}")
    print(f"{parsed.source} is as it was: remove it when the new one serves")
    return 0


@asynccontextmanager
async def _source(parsed: argparse.Namespace) -> AsyncIterator[Source]:
    """A source that nobody writes to while it is read."""
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
