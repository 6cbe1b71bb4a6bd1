"""`pilothouse restore FILE`: create a store from a backup file."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from pilothouse.cli.arguments import CommandParser, add_etcd_arguments, run_command
from pilothouse.machinery.files import make_directory

if TYPE_CHECKING:
    from pilothouse.apiserver.storage.backup.file import BackupFile
    from pilothouse.apiserver.storage.backup.model import Target

_BUMP_EMBEDDED = 1_000_000_000
_BUMP_ETCD = 100_000


def main(arguments: Sequence[str]) -> int:
    """Return 0 if the store is restored, 2 if nothing is written."""
    parsed = _parser().parse_args(arguments)
    if parsed.data_dir is None and not parsed.etcd_servers:
        print("Error: name the store to create with --data-dir or --etcd-servers", file=sys.stderr)
        return 2
    return run_command(_restore(parsed))


def _parser() -> argparse.ArgumentParser:
    parser = CommandParser(
        prog="pilothouse restore",
        description="Create a store from a backup file. The store must be empty and no server may use it.",
        example="pilothouse restore monday.backup --data-dir ./restored",
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="backup file to read")
    parser.add_argument("--data-dir", type=Path, metavar="DIR", help="data directory to create")
    add_etcd_arguments(parser)
    parser.add_argument(
        "--bump-revision",
        type=int,
        metavar="N",
        help="revisions to skip, so that no revision that the old server issued after the backup is issued again "
        f"(default: {_BUMP_EMBEDDED} for --data-dir, {_BUMP_ETCD} for etcd, where each takes a write)",
    )
    parser.add_argument("--without-files", action="store_true", help="do not restore certificates and keys")
    return parser


async def _restore(parsed: argparse.Namespace) -> int:
    from pilothouse.apiserver.storage.backup.file import BackupFile
    from pilothouse.controlplane.data_dir import put_files, refuse_other_files

    backup = BackupFile(parsed.file)
    async with _target(parsed, backup) as target:
        wants_files = parsed.data_dir is not None and not parsed.without_files
        if wants_files:
            refuse_other_files(parsed.data_dir, backup.files())
            make_directory(parsed.data_dir)
        files = put_files(parsed.data_dir, backup.files()) if wants_files else 0
        revision = await target.fill(backup, at_least=backup.revision + _bump(parsed))
    print(f"Restored {backup.written.entries} keys of revision {backup.revision} and {files} files.")
    print(f"The store is at revision {revision}: clients with older resource versions must list again.")
    if backup.prefix != "/registry":
        print(f"Its keys have the prefix {backup.prefix}: start the server with --etcd-prefix={backup.prefix}.")
    return 0


def _target(parsed: argparse.Namespace, backup: BackupFile) -> AbstractAsyncContextManager[Target]:
    from pilothouse.cli.stores.opening import etcd_target, sqlite_target

    if parsed.etcd_servers:
        return etcd_target(parsed, parsed.etcd_servers.split(","), backup.prefix)
    return sqlite_target(parsed.data_dir)


def _bump(parsed: argparse.Namespace) -> int:
    if parsed.bump_revision is not None:
        return max(0, int(parsed.bump_revision))
    return _BUMP_ETCD if parsed.etcd_servers else _BUMP_EMBEDDED
