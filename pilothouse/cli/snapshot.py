"""`pilothouse snapshot`: save the objects of a cluster in a file or folder, and write them back."""

from __future__ import annotations

import argparse
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pilothouse.cli.arguments import CommandParser, add_kubeconfig_arguments

if TYPE_CHECKING:
    from pilothouse.cli.cluster_objects.writing import Written
    from pilothouse.client.rest.client import Client
    from pilothouse.machinery.objects import Json


def main(arguments: Sequence[str]) -> int:
    """Return 0 on success, 1 if the server refused some objects, 2 if nothing was written."""
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
    description = "Save, load, export or import the objects of a cluster."
    parser = CommandParser(
        prog="pilothouse snapshot", description=description, example="pilothouse snapshot save cluster.snapshot"
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, help_, metavar, example in (
        ("save", "write all objects to one file", "FILE", "cluster.snapshot"),
        ("load", "create the objects of a saved file in a cluster, with their status", "FILE", "cluster.snapshot"),
        ("export", "write all objects as YAML, one file per object", "DIR", "./objects"),
        ("import", "apply the manifests of a folder in order of dependency", "DIR", "./objects"),
    ):
        command = commands.add_parser(
            name,
            help=help_,
            description=f"{help_[0].upper()}{help_[1:]}.",
            example=f"pilothouse snapshot {name} {example}",
        )
        command.add_argument(
            "path", type=Path, metavar=metavar, help=f"{'folder' if metavar == 'DIR' else 'file'} to use"
        )
        location = command.add_mutually_exclusive_group()
        add_kubeconfig_arguments(command, location)
        help_ = "data directory of a running or stopped server, instead of a kubeconfig"
        location.add_argument("--data-dir", type=Path, metavar="DIR", help=help_)
        if name == "export":
            help_ = "omit status, managedFields and other fields that the server sets"
            command.add_argument("--plain", action="store_true", help=help_)
    return parser


async def _save(parsed: argparse.Namespace) -> int:
    from pilothouse.cli.cluster_objects.snapshot_file import all_objects, write_snapshot

    async with _cluster(parsed, writes=False) as client:
        objects = await all_objects(client)
    write_snapshot(parsed.path, objects)
    print(f"Wrote {len(objects.items)} objects at resource version {objects.revision} to {parsed.path}.")
    if objects.inexact:
        print(f"Listed at a later resource version: {', '.join(objects.inexact)}")
    return 0


async def _export(parsed: argparse.Namespace) -> int:
    from pilothouse.cli.cluster_objects.snapshot_file import all_objects
    from pilothouse.cli.cluster_objects.yaml_folder import write_folder

    async with _cluster(parsed, writes=False) as client:
        objects = await all_objects(client)
    written = write_folder(parsed.path, objects.items, plain=parsed.plain)
    print(f"Wrote {written} objects at resource version {objects.revision} to {parsed.path}.")
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
    print(f"Wrote {written.done} objects of {parsed.path} to the cluster.")
    return 1 if written.failures else 0


_COMMANDS: dict[str, Callable[[argparse.Namespace], Coroutine[Any, Any, int]]] = {
    "save": _save,
    "load": _load,
    "export": _export,
    "import": _import,
}


@asynccontextmanager
async def _cluster(parsed: argparse.Namespace, *, writes: bool) -> AsyncIterator[Client]:
    """Yield a client of the kubeconfig's cluster, or of a temporary server on the data directory.

    Reads use a copy of the data directory, so that its own server may run.
    """
    from dataclasses import replace

    from pilothouse.client.config.kubeconfig import load_kubeconfig
    from pilothouse.client.rest.connect import connect

    if parsed.data_dir is None:
        async with connect(replace(load_kubeconfig(parsed.kubeconfig, context=parsed.context), qps=0)) as client:
            yield client
        return
    from tempfile import TemporaryDirectory

    from pilothouse.testing.running import server

    flags: dict[str, Any] = {"controllers": "-*", "disable_admission_plugins": ["ServiceAccount"]}
    with TemporaryDirectory(prefix="pilothouse-snapshot-") as folder:
        data_dir = parsed.data_dir
        if not writes:
            from pilothouse.controlplane.data_dir import copy_data_dir

            data_dir = Path(folder) / "data"
            copy_data_dir(parsed.data_dir, data_dir)
        async with server(data_dir=data_dir, **flags) as api:
            yield api.client(in_process=True)
