"""`pilothouse dev`: run the project's server beside a temporary control plane, and restart it on every change."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from pilothouse.cli.arguments import CommandParser, add_kubernetes_version


def main(arguments: Sequence[str]) -> int:
    parser = _parser()
    parsed = parser.parse_args(arguments)
    if parsed.kubeconfig and parsed.kubernetes_version:
        parser.error("--kubernetes-version is for the temporary control plane: leave out --kubeconfig")
    import asyncio

    from pilothouse.scaffold.names import ScaffoldError

    try:
        asyncio.run(_develop(parsed.kubeconfig and parsed.kubeconfig.absolute()))
    except ScaffoldError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> CommandParser:
    description = "Run the server of this project, restart it when a file changes, and clean up at the end."
    parser = CommandParser(prog="pilothouse dev", description=description)
    help_ = "kubeconfig of a cluster to register in; default: start a temporary control plane"
    parser.add_argument("--kubeconfig", type=Path, metavar="FILE", help=help_)
    add_kubernetes_version(parser)
    return parser


async def _develop(kubeconfig: Path | None) -> None:
    import asyncio

    from pilothouse.machinery.platform import HANGUP_SIGNALS, STOP_SIGNALS, on_signals
    from pilothouse.scaffold.developing import develop
    from pilothouse.scaffold.project import find_project

    stop = asyncio.Event()
    # A second signal changes nothing: the clean-up has a time limit.
    on_signals((*STOP_SIGNALS, *HANGUP_SIGNALS), lambda _: stop.set())
    project = find_project(Path.cwd())
    await develop(project, kubeconfig, stop, lambda line: print(line, flush=True))
