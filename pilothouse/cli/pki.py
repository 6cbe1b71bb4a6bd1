"""`pilothouse pki`: the keys that the servers of a cluster share, shown and replaced while they run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pilothouse.cli.keys_place import add_data_dir, shared_keys
from pilothouse.cli.stores.arguments import add_etcd_arguments

if TYPE_CHECKING:
    from pilothouse.controlplane.shared_keys.keys import SharedKeys
    from pilothouse.controlplane.shared_keys.rotation import Kind

_AFTERWARDS = {
    "trust": "Next: let clients have the new bundle, then --step issue.",
    "issue": "Next: let clients renew what the old one issued, then --step retire.",
    "retire": "What the old one issued is believed no more.",
}
_SERVERS_FOLLOW_WITHIN = 15.0
"""Seconds: they look for changes every second, and what uses the files looks at them every five."""


def main(arguments: Sequence[str]) -> int:
    parsed = _parser().parse_args(arguments)
    import asyncio

    from pilothouse.apiserver.storage.errors import StorageError
    from pilothouse.controlplane.certificates.errors import CertificateError
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

    async with shared_keys(parsed) as place:
        keys = await place.known()
    print(f"{place}:")
    for name, kind in KINDS.items():
        print(f"{name}: next step is {next_step(keys, kind)}")
        for line in _trusted(keys, kind):
            print(f"  {line}")


async def _rotate(parsed: argparse.Namespace) -> None:
    """Return when the servers have had the time to follow: a step that comes too soon finds some that have not."""
    import asyncio

    from pilothouse.controlplane.shared_keys.rotation import KINDS, STEPS

    kind, step = KINDS[parsed.kind], STEPS[parsed.step]
    async with shared_keys(parsed) as place:
        keys = await place.change(lambda keys: step(keys, kind))
    for line in _trusted(keys, kind):
        print(line, flush=True)
    if not parsed.no_wait:
        await asyncio.sleep(_SERVERS_FOLLOW_WITHIN)
    print(_AFTERWARDS[parsed.step])


_COMMANDS = {"show": _show, "rotate": _rotate}


def _trusted(keys: SharedKeys, kind: Kind) -> Iterator[str]:
    """Yield a line for each authority or key that is believed."""
    from pilothouse.controlplane.shared_keys.rotation import trusted

    for name, issues in trusted(keys, kind):
        yield f"{'issues ' if issues else 'trusted'}  {name}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="pilothouse pki", description="Show and replace the keys of a cluster.")
    commands = parser.add_subparsers(dest="command", required=True)
    show = commands.add_parser("show", help="what is trusted and what issues", description="Show what is trusted.")
    rotate = commands.add_parser(
        "rotate", help="take a step towards new ones", description="Replace keys without a stop, in three steps."
    )
    rotate.add_argument("kind", choices=("ca", "front-proxy", "service-account"))
    rotate.add_argument("--step", required=True, choices=("trust", "issue", "retire"))
    rotate.add_argument("--no-wait", action="store_true", help="do not give the servers the time to follow")
    for command in (show, rotate):
        add_data_dir(command)
        command.add_argument("--pki-dir", type=Path, help="the shared directory, if no data directory is at hand")
        add_etcd_arguments(command)
    return parser
