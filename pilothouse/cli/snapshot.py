"""`pilothouse snapshot`: a cluster's objects in a file or a folder, and back."""

from __future__ import annotations

import argparse
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pilothouse.cli.cluster_objects.writing import Written
    from pilothouse.client.rest.client import Client
    from pilothouse.machinery.objects import Json


def main(arguments: Sequence[str]) -> int:
    """0 if all went well, 1 if some objects were refused, 2 if nothing could be done."""
    parsed = _parser().parse_args(arguments)
    import asyncio

    from pilothouse.cli.cluster_objects.snapshot_file import NotASnapshot
    from pilothouse.cli.cluster_objects.yaml_folder import UnreadableManifest
    from pilothouse.client.config.model import ConfigError
    from pilothouse.machinery.status_error import PilothouseError

    try:
        return asyncio.run(_COMMANDS[parsed.command](parsed))
    except (ConfigError, NotASnapshot, OSError, PilothouseError, UnreadableManifest) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="pilothouse snapshot", description="Keep a cluster's objects, and use them.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, help_, place in (
        ("save", "write all objects into one file", "FILE"),
        ("load", "bring the objects of such a file into a cluster, with their status", "FILE"),
        ("export", "write all objects as YAML, one file each", "DIR"),
        ("import", "apply the manifests of a folder in an order that works", "DIR"),
    ):
        command = commands.add_parser(name, help=help_, description=f"{help_[0].upper()}{help_[1:]}.")
        command.add_argument("path", type=Path, metavar=place)
        where = command.add_mutually_exclusive_group()
        where.add_argument("--kubeconfig", type=Path, help="of the cluster; the usual places if not given")
        where.add_argument("--data-dir", type=Path, help="of a Pilothouse that need not run, instead of a kubeconfig")
        command.add_argument("--context", default="", help="of the kubeconfig; its current one if not given")
        if name == "export":
            command.add_argument(
                "--plain", action="store_true", help="without status, managedFields and what else the server fills in"
            )
    return parser


async def _save(parsed: argparse.Namespace) -> int:
    from pilothouse.cli.cluster_objects.reading import all_objects
    from pilothouse.cli.cluster_objects.snapshot_file import write_snapshot

    async with _cluster(parsed, writes=False) as client:
        found = await all_objects(client)
    write_snapshot(parsed.path, found)
    print(f"{len(found.items)} objects at resource version {found.revision} are in {parsed.path}")
    if found.inexact:
        print(f"listed a moment later: {', '.join(found.inexact)}")
    return 0


async def _export(parsed: argparse.Namespace) -> int:
    from pilothouse.cli.cluster_objects.reading import all_objects
    from pilothouse.cli.cluster_objects.yaml_folder import write_folder

    async with _cluster(parsed, writes=False) as client:
        found = await all_objects(client)
    written = write_folder(parsed.path, found.items, plain=parsed.plain)
    print(f"{written} objects at resource version {found.revision} are in {parsed.path}")
    return 0


async def _load(parsed: argparse.Namespace) -> int:
    from pilothouse.cli.cluster_objects.snapshot_file import read_snapshot

    return await _write(parsed, read_snapshot(parsed.path), status=True)


async def _import(parsed: argparse.Namespace) -> int:
    from pilothouse.cli.cluster_objects.yaml_folder import read_folder

    return await _write(parsed, read_folder(parsed.path), status=False)


async def _write(parsed: argparse.Namespace, objects: list[Json], *, status: bool) -> int:
    from pilothouse.cli.cluster_objects.writing import ObjectWriter

    async with _cluster(parsed, writes=True) as client:
        written: Written = await ObjectWriter(client, status=status).write(objects)
    for failure in written.failures:
        print(f"Error: {failure}", file=sys.stderr)
    print(f"{written.done} objects of {parsed.path} are in the cluster")
    return 1 if written.failures else 0


_COMMANDS: dict[str, Callable[[argparse.Namespace], Coroutine[Any, Any, int]]] = {
    "save": _save,
    "load": _load,
    "export": _export,
    "import": _import,
}


@asynccontextmanager
async def _cluster(parsed: argparse.Namespace, *, writes: bool) -> AsyncIterator[Client]:
    """A client of the cluster of the kubeconfig; or of a server on the data directory, where only it and nobody else
    does anything. What is only read is read from a copy, so that the server of the directory may run."""
    from dataclasses import replace

    from pilothouse.client.config.kubeconfig import load_kubeconfig
    from pilothouse.client.rest.connect import connect

    if parsed.data_dir is None:
        async with connect(replace(load_kubeconfig(parsed.kubeconfig, context=parsed.context), qps=0)) as client:
            yield client
        return
    from tempfile import TemporaryDirectory

    from pilothouse.testing.running import server

    quiet: dict[str, Any] = {"controllers": "-*", "disable_admission_plugins": ["ServiceAccount"]}
    with TemporaryDirectory(prefix="pilothouse-snapshot-") as folder:
        data_dir = parsed.data_dir if writes else _copy(parsed.data_dir, Path(folder) / "data")
        async with server(data_dir=data_dir, **quiet) as api:
            yield api.client(in_process=True)


def _copy(source: Path, target: Path) -> Path:
    from pilothouse.controlplane.data_dir import copy_data_dir

    copy_data_dir(source, target)
    return target
