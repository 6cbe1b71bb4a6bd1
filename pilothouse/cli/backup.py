"""`pilothouse backup FILE`: write a store at one revision, and the files of its data directory, to one file."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from pilothouse.cli.arguments import CommandParser, add_etcd_arguments, add_server_arguments, run_command


def main(arguments: Sequence[str]) -> int:
    """Return 0 if the backup is written, 2 if not."""
    return run_command(_back_up(_parser().parse_args(arguments)))


def _parser() -> argparse.ArgumentParser:
    parser = CommandParser(
        prog="pilothouse backup",
        description="Write a consistent backup of a store to a file. The server may run or not.",
        example="pilothouse backup monday.backup --data-dir ~/.local/share/pilothouse",
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="file to write")
    help_ = "data directory of the server; the backup includes its certificates and keys"
    parser.add_argument("--data-dir", type=Path, metavar="DIR", help=help_)
    help_ = "leave out keys of the embedded store whose values are damaged, and name them"
    parser.add_argument("--skip-damaged", action="store_true", help=help_)
    add_etcd_arguments(parser)
    add_server_arguments(parser)
    return parser


async def _back_up(parsed: argparse.Namespace) -> int:
    from datetime import UTC, datetime

    from pilothouse.apiserver.storage.backup.file import write_backup
    from pilothouse.apiserver.storage.backup.sqlite import SqliteSource
    from pilothouse.cli.stores.opening import opened_source
    from pilothouse.controlplane.data_dir import files_of

    created_at = datetime.now(UTC).isoformat(timespec="seconds")
    async with opened_source(parsed) as source:
        files = files_of(parsed.data_dir) if parsed.data_dir is not None else ()
        written = await write_backup(parsed.file, source, files, made=created_at)
        for key in source.skipped if isinstance(source, SqliteSource) else ():
            print(f"{key} is damaged: left out")
        print(f"{parsed.file}: {written.entries} keys at revision {source.revision} and {written.files} files")
    if parsed.data_dir is None:
        print("The backup has no certificates and keys of the server: add them with --data-dir.")
    return 0
