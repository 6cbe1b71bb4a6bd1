"""The arguments that say where a store is, and one way to run a command on it. Imports nothing heavy."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any


def add_etcd_arguments(parser: argparse.ArgumentParser, *, servers: bool = True) -> None:
    if servers:
        parser.add_argument("--etcd-servers", default="", help="URLs of an etcd's members, comma separated")
    parser.add_argument("--etcd-cafile", default="", help="the CA that signed the certificates of the etcd members")
    parser.add_argument("--etcd-certfile", default="", help="the client certificate to show to etcd")
    parser.add_argument("--etcd-keyfile", default="", help="the key of --etcd-certfile")
    parser.add_argument("--etcd-prefix", default="/registry", help="what every key begins with (default: /registry)")


def add_kubeconfig_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kubeconfig", type=Path, help="of a server that runs; its user must be of system:masters")
    parser.add_argument("--context", default="", help="of the kubeconfig; its current one if not given")


def finished(command: Coroutine[Any, Any, int]) -> int:
    """Run it and return its exit code: 2, and one line on stderr, where it was refused."""
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
