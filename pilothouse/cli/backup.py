"""`pilothouse backup FILE`: all that a store holds at one revision, and the files beside it, in one file."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from pilothouse.cli.stores.arguments import add_etcd_arguments, add_kubeconfig_arguments, finished


def main(arguments: Sequence[str]) -> int:
    """0 if the file is there, 2 if it is not."""
    return finished(_back_up(_parser().parse_args(arguments)))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pilothouse backup",
        description="Write all that a store holds at one revision into a file. Its server may run, or not.",
    )
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--data-dir", type=Path, help="of a server; its certificates and keys are kept, too")
    add_etcd_arguments(parser)
    add_kubeconfig_arguments(parser)
    return parser


async def _back_up(parsed: argparse.Namespace) -> int:
    from datetime import UTC, datetime

    from pilothouse.apiserver.storage.backup.file import write_backup
    from pilothouse.cli.stores.opening import opened_source
    from pilothouse.controlplane.data_dir_files import files_of

    made = datetime.now(UTC).isoformat(timespec="seconds")
    async with opened_source(parsed) as source:
        files = files_of(parsed.data_dir) if parsed.data_dir is not None else ()
        written = await write_backup(parsed.file, source, files, made=made)
        print(f"{written.entries} keys at revision {source.revision} and {written.files} files are in {parsed.file}")
    if parsed.data_dir is None:
        print("without certificates and keys of the server: they are kept with --data-dir")
    return 0
