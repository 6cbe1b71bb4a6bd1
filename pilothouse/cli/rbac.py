"""`pilothouse rbac`: the least roles by which what was recorded is allowed, as YAML."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def main(arguments: Sequence[str]) -> int:
    parsed = _parser().parse_args(arguments)
    from pilothouse.client.config.model import ConfigError
    from pilothouse.client.rest.errors import ConnectionFailed
    from pilothouse.machinery.status_error import StatusError

    try:
        recording = asyncio.run(_recording(parsed.from_recording, parsed.kubeconfig))
    except (ConfigError, ConnectionFailed, OSError, StatusError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    import yaml

    from pilothouse.bench.recording.roles import roles_of

    print(yaml.safe_dump_all(roles_of(recording), sort_keys=False), end="")
    return 0


async def _recording(name: str, kubeconfig: Path | None) -> dict[str, Any]:
    from pilothouse.client.config.in_cluster import load_config
    from pilothouse.client.config.kubeconfig import load_kubeconfig
    from pilothouse.client.rest.connect import connect

    client = connect(load_kubeconfig(kubeconfig) if kubeconfig else load_config())
    try:
        return await client.resource("testing.pilothouse.dev/v1alpha1", "recordings").get(name)
    finally:
        await client.close()


def _parser() -> argparse.ArgumentParser:
    description = "Print the least roles and bindings that allow just what a Recording has: kubectl apply takes them."
    parser = argparse.ArgumentParser(prog="pilothouse rbac", description=description)
    parser.add_argument("--from-recording", required=True, metavar="NAME", help="of a server with --testing")
    parser.add_argument("--kubeconfig", type=Path, help="of that server; $KUBECONFIG, if it is not given")
    return parser
