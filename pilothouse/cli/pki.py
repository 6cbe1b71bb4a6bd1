"""`pilothouse pki`: show and rotate the keys that the servers of a cluster share, while they run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pilothouse.cli.arguments import CommandParser, add_data_dir, add_etcd_arguments, shared_keys

if TYPE_CHECKING:
    from pilothouse.controlplane.shared_keys.directory import SharedKeys
    from pilothouse.controlplane.shared_keys.rotation import Kind

_NEXT_STEPS = {
    "trust": "Next: distribute the new CA bundle to clients, then run --step issue.",
    "issue": "Next: renew the client credentials that the old key issued, then run --step retire.",
    "retire": "Done: credentials that the old key issued are rejected from now on.",
}
_SERVERS_FOLLOW_WITHIN = 15.0
"""Seconds. Servers poll the keys every second, and reload files every five seconds."""


def main(arguments: Sequence[str]) -> int:
    parsed = _parser().parse_args(arguments)
    import asyncio

    from pilothouse.apiserver.storage.errors import StorageError
    from pilothouse.controlplane.certificates.paths import CertificateError
    from pilothouse.controlplane.errors import StartFailed
    from pilothouse.controlplane.shared_keys.rotation import RotationError

    try:
        asyncio.run(_COMMANDS[parsed.command](parsed))
    except (CertificateError, OSError, RotationError, StartFailed, StorageError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    return 0


async def _show(parsed: argparse.Namespace) -> None:
    from pilothouse.controlplane.shared_keys.rotation import KINDS, next_step

    async with shared_keys(parsed) as store:
        keys = await store.known()
    print(f"{store}:")
    for name, kind in KINDS.items():
        print(f"{name}: next step is {next_step(keys, kind)}")
        for line in _trusted(keys, kind):
            print(f"  {line}")


async def _rotate(parsed: argparse.Namespace) -> None:
    """Take one step, then wait until every server has loaded the keys: an early next step breaks slow servers."""
    import asyncio

    from pilothouse.controlplane.shared_keys.rotation import KINDS, STEPS

    kind, step = KINDS[parsed.kind], STEPS[parsed.step]
    async with shared_keys(parsed) as store:
        keys = await store.change(lambda keys: step(keys, kind))
    for line in _trusted(keys, kind):
        print(line, flush=True)
    if not parsed.no_wait:
        await asyncio.sleep(_SERVERS_FOLLOW_WITHIN)
    print(_NEXT_STEPS[parsed.step])


_COMMANDS = {"show": _show, "rotate": _rotate}


def _trusted(keys: SharedKeys, kind: Kind) -> Iterator[str]:
    """Yield a line for each trusted authority or key."""
    from pilothouse.controlplane.shared_keys.rotation import trusted

    for name, issues in trusted(keys, kind):
        yield f"{'issues ' if issues else 'trusted'}  {name}"


def _parser() -> argparse.ArgumentParser:
    description = "Show or rotate the CAs and keys that the servers of a cluster share."
    parser = CommandParser(prog="pilothouse pki", description=description, example="pilothouse pki show")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    help_ = "list trusted and issuing keys"
    show = commands.add_parser("show", help=help_, description="List the trusted and the issuing keys.")
    rotate = commands.add_parser(
        "rotate",
        help="take one of three steps of a rotation",
        description="Rotate a key without downtime in three steps: trust, issue, retire.",
        example="pilothouse pki rotate ca --step trust",
    )
    rotate.add_argument("kind", choices=("ca", "front-proxy", "service-account"), help="key to rotate")
    rotate.add_argument("--step", required=True, choices=("trust", "issue", "retire"), help="step to take")
    rotate.add_argument("--no-wait", action="store_true", help="do not wait until the servers have loaded the keys")
    for command in (show, rotate):
        add_data_dir(command)
        command.add_argument("--pki-dir", type=Path, metavar="DIR", help="shared key directory, instead of --data-dir")
        add_etcd_arguments(command)
    return parser
