"""`pilothouse kubeconfig`: print a kubeconfig with a context for each server of a cluster."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pilothouse.cli.arguments import CommandParser, add_data_dir, data_dir_of

if TYPE_CHECKING:
    from pilothouse.machinery.objects import Json

_BALANCED = "pilothouse"


def main(arguments: Sequence[str]) -> int:
    parsed = _parser().parse_args(arguments)
    import asyncio

    from pilothouse.client.config.model import ConfigError
    from pilothouse.client.rest.errors import ConnectionFailed
    from pilothouse.machinery.status_error import StatusError

    source = parsed.kubeconfig or data_dir_of(parsed) / "admin.kubeconfig"
    try:
        urls = parsed.server or asyncio.run(_servers(source))
        merged = _with_servers(source, urls, parsed.load_balancer)
    except (ConfigError, ConnectionFailed, OSError, StatusError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    from pilothouse.machinery.codec.yaml_emit import emit_yaml
    from pilothouse.machinery.files import PRIVATE, write_atomically

    text = emit_yaml(merged)
    if parsed.output is None:
        print(text.decode(), end="")
    else:
        write_atomically(parsed.output.absolute(), text, mode=PRIVATE)
    return 0


async def _servers(kubeconfig: Path) -> list[str]:
    """Return the URLs in the `kubernetes` EndpointSlice. Raises StatusError, ConfigError, ConnectionFailed."""
    from pilothouse.client.config.kubeconfig import load_kubeconfig
    from pilothouse.client.rest.connect import connect

    async with connect(load_kubeconfig(kubeconfig)) as client:
        slices = client.resource("discovery.k8s.io/v1", "endpointslices", namespace="default")
        slice_: Json = await slices.get("kubernetes")
    port = slice_["ports"][0]["port"]
    hosts = sorted(address for endpoint in slice_["endpoints"] for address in endpoint["addresses"])
    return [f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}" for host in hosts]


def _with_servers(kubeconfig: Path, urls: Sequence[str], load_balancer: str) -> Json:
    """Return a kubeconfig with the given user and CA and a context per server. Raises ConfigError."""
    from pilothouse.client.config.kubeconfig import merge, read_kubeconfig

    source = merge([read_kubeconfig(kubeconfig)])
    context = source["contexts"][source["current-context"]]
    user, cluster = context["user"], source["clusters"][context["cluster"]]
    servers = ({_BALANCED: load_balancer} if load_balancer else {}) | {url.partition("://")[2]: url for url in urls}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {**cluster, "server": url}} for name, url in servers.items()],
        "users": [{"name": user, "user": source["users"][user]}],
        "contexts": [{"name": f"{user}@{name}", "context": {"cluster": name, "user": user}} for name in servers],
        "current-context": f"{user}@{next(iter(servers))}",
    }


def _parser() -> argparse.ArgumentParser:
    parser = CommandParser(
        prog="pilothouse kubeconfig",
        description="Print a kubeconfig with a context for each server of a cluster, and one for a load balancer.",
        example="pilothouse kubeconfig --load-balancer https://api.example.com:6443 -o cluster.kubeconfig",
    )
    add_data_dir(parser)
    help_ = "kubeconfig with the user and the CA; default: admin.kubeconfig of --data-dir"
    parser.add_argument("--kubeconfig", type=Path, metavar="FILE", help=help_)
    help_ = "URL of a server; repeat the flag for several; default: ask the cluster"
    parser.add_argument("--server", action="append", metavar="URL", help=help_)
    help_ = "URL of the load balancer; becomes the current context"
    parser.add_argument("--load-balancer", default="", metavar="URL", help=help_)
    help_ = "file to write, readable by its owner only; default: standard output"
    parser.add_argument("--output", "-o", type=Path, metavar="FILE", help=help_)
    return parser
