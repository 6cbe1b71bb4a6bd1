"""`pilothouse rbac`: print the minimal RBAC roles for the requests of a recording, as YAML."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pilothouse.cli.arguments import CommandParser, add_kubeconfig


def main(arguments: Sequence[str]) -> int:
    parsed = _parser().parse_args(arguments)
    from pilothouse.client.config.model import ConfigError
    from pilothouse.client.rest.errors import ConnectionFailed
    from pilothouse.machinery.status_error import StatusError

    try:
        recording = asyncio.run(recording_named(parsed.from_recording, parsed.kubeconfig))
    except (ConfigError, ConnectionFailed, OSError, StatusError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    import yaml

    from pilothouse.bench.recorded_roles import roles_of

    print(yaml.safe_dump_all(roles_of(recording), sort_keys=False), end="")
    return 0


def _parser() -> CommandParser:
    parser = CommandParser(
        prog="pilothouse rbac",
        description="Print the minimal roles and bindings that allow the requests of a Recording.",
        example="pilothouse rbac --from-recording my-test | kubectl apply -f -",
    )
    help_ = "name of a Recording on a server that runs with --testing"
    parser.add_argument("--from-recording", required=True, metavar="NAME", help=help_)
    add_kubeconfig(parser)
    return parser


async def recording_named(name: str, kubeconfig: Path | None) -> dict[str, Any]:
    """Return a Recording of the server. Raises ConfigError, ConnectionFailed, StatusError."""
    from pilothouse.client.config.kubeconfig import load_config, load_kubeconfig
    from pilothouse.client.rest.connect import connect
    from pilothouse.machinery.errors import NotFound

    config = load_kubeconfig(kubeconfig) if kubeconfig else load_config()
    async with connect(config) as client:
        try:
            return await client.resource("testing.pilothouse.dev/v1alpha1", "recordings").get(name)
        except NotFound as error:
            if (error.details or {}).get("kind") == "recordings":
                raise
            raise NotFound(
                f"the server at {config.host} serves no recordings: start it with `pilothouse serve --testing`"
            ) from None
