"""Arguments that locate a store, and the runner of commands on stores. Imports nothing heavy."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Coroutine
from typing import Any

from pilothouse.cli.arguments import add_kubeconfig_arguments


def add_etcd_arguments(parser: argparse.ArgumentParser, *, servers: bool = True) -> None:
    if servers:
        parser.add_argument(
            "--etcd-servers", default="", metavar="URLS", help="URLs of the etcd members, comma separated"
        )
    parser.add_argument("--etcd-cafile", default="", metavar="FILE", help="CA certificate of the etcd members")
    parser.add_argument("--etcd-certfile", default="", metavar="FILE", help="client certificate for etcd")
    parser.add_argument("--etcd-keyfile", default="", metavar="FILE", help="private key of --etcd-certfile")
    parser.add_argument("--etcd-prefix", default="/registry", help="prefix of every key (default: /registry)")


def add_server_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --kubeconfig and --context, which locate a running server."""
    add_kubeconfig_arguments(parser.add_argument_group("running server (the user must be in system:masters)"))


def run_command(command: Coroutine[Any, Any, int]) -> int:
    """Run the command and return its exit code. A refused command prints one line on stderr and returns 2."""
    import asyncio

    from pilothouse.client.config.model import ConfigError
    from pilothouse.controlplane.data_dir import DataDirError
    from pilothouse.controlplane.errors import StartFailed
    from pilothouse.machinery.status_error import PilothouseError

    try:
        return asyncio.run(command)
    except (ConfigError, DataDirError, OSError, PilothouseError, StartFailed, ValueError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
