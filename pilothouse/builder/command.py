"""The command line of an extension server: parse the flags, then serve until a signal."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pilothouse.builder.kind import InvalidDeclaration
from pilothouse.builder.options import parse_options, usage
from pilothouse.controlplane.errors import StartFailed
from pilothouse.controlplane.options.completion import InvalidOptions
from pilothouse.machinery.flags import FlagError
from pilothouse.machinery.platform import new_event_loop

if TYPE_CHECKING:
    from pilothouse.builder.running import Ready
    from pilothouse.builder.server import APIServer


def main(server: APIServer, arguments: Sequence[str], *, standalone: bool = False) -> int:
    """Run the server and return the exit code."""
    if any(word in ("-h", "--help") for word in arguments):
        print(f"Serves the API group {server.group}.\n\n{usage()}", end="")
        return 0
    from pilothouse.apiserver import logs
    from pilothouse.builder.running import serve
    from pilothouse.controlplane.signals import stop_on_signal

    try:
        options = parse_options(arguments, group=server.group, standalone=standalone)
        logs.configure(verbosity=options.logs.verbosity, format=options.logs.logging_format)

        async def until_signal() -> None:
            await serve(server, options, stop_on_signal(), _announce)

        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(until_signal())
    except (FlagError, InvalidOptions, InvalidDeclaration, StartFailed) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    return 0


def _announce(ready: Ready) -> None:
    lines = [f"{ready.group} is ready.", f"  server      {ready.url}", f"  data        {ready.data_dir}"]
    if ready.kubeconfig:
        lines += [f"  kubeconfig  {ready.kubeconfig}"]
    if ready.register_file:
        lines += ["", f"kubectl apply -f {ready.register_file}"]
    print("\n".join(lines), flush=True)
