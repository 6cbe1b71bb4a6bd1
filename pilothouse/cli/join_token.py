"""`pilothouse join-token`: print the token that lets a server join a cluster on etcd."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from pilothouse.cli.arguments import CommandParser, add_data_dir, add_etcd_arguments, data_dir_of, stored_keys


def main(arguments: Sequence[str]) -> int:
    parsed = _parser().parse_args(arguments)
    import asyncio

    from pilothouse.apiserver.storage.errors import StorageError
    from pilothouse.controlplane.certificates.paths import CertificateError
    from pilothouse.controlplane.errors import StartFailed

    try:
        print(asyncio.run(_token(parsed)))
    except (CertificateError, OSError, StartFailed, StorageError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    return 0


async def _token(parsed: argparse.Namespace) -> str:
    """Return the join token. Raises JoinRefused if the data directory has none."""
    from pilothouse.controlplane.shared_keys.record import JoinRefused, JoinToken
    from pilothouse.controlplane.shared_keys.stored import kept_token

    if parsed.generate:
        return JoinToken.new().text
    if parsed.renew:
        async with stored_keys(parsed) as stored:
            await stored.change_token(JoinToken.new())
    token = kept_token(data_dir_of(parsed))
    if token is None:
        raise JoinRefused(
            f"{data_dir_of(parsed)} has no join token: name the data directory of a server with its keys in etcd by"
            " --data-dir"
        )
    return token.text


def _parser() -> argparse.ArgumentParser:
    parser = CommandParser(
        prog="pilothouse join-token",
        description="Print the token that lets a server join a cluster on etcd.",
        example='PILOTHOUSE_JOIN="$(pilothouse join-token)" pilothouse serve --etcd-servers=http://10.0.0.1:2379',
    )
    add_data_dir(parser)
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--generate", action="store_true", help="print a new token for servers that have not started yet")
    mode.add_argument("--renew", action="store_true", help="replace the token; servers cannot join with the old token")
    add_etcd_arguments(parser)
    return parser
