"""`pilothouse join-token`: the token with which a server joins those of a cluster on etcd."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from pilothouse.cli.keys_place import add_data_dir, data_dir_of, stored_keys
from pilothouse.cli.stores.arguments import add_etcd_arguments


def main(arguments: Sequence[str]) -> int:
    parsed = _parser().parse_args(arguments)
    import asyncio

    from pilothouse.apiserver.storage.errors import StorageError
    from pilothouse.controlplane.certificates.errors import CertificateError
    from pilothouse.controlplane.errors import StartFailed

    try:
        print(asyncio.run(_token(parsed)))
    except (CertificateError, OSError, StartFailed, StorageError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    return 0


async def _token(parsed: argparse.Namespace) -> str:
    """Raises JoinRefused where there is none."""
    from pilothouse.controlplane.shared_keys.stored import kept_token
    from pilothouse.controlplane.shared_keys.token import JoinRefused, JoinToken

    if parsed.generate:
        return JoinToken.new().text
    if parsed.renew:
        async with stored_keys(parsed) as stored:
            await stored.change_token(JoinToken.new())
    kept = kept_token(data_dir_of(parsed))
    if kept is None:
        raise JoinRefused(f"{data_dir_of(parsed)} is not of a server that has its keys in etcd")
    return kept.text


def _parser() -> argparse.ArgumentParser:
    description = (
        "Print the token with which 'pilothouse serve --etcd-servers=… --join' joins the servers of a cluster."
    )
    parser = argparse.ArgumentParser(prog="pilothouse join-token", description=description)
    add_data_dir(parser)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--generate", action="store_true", help="print a new one, for servers that are all yet to start")
    how.add_argument("--renew", action="store_true", help="make a new one: the old one lets nobody join any more")
    add_etcd_arguments(parser)
    return parser
