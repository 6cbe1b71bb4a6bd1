"""`pilothouse console`: serve the web console of a cluster on loopback, for this user only."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pilothouse.cli.arguments import CommandParser, add_kubeconfig_arguments

if TYPE_CHECKING:
    from pilothouse.client.config.model import ClientConfig


def main(arguments: Sequence[str]) -> int:
    """Return 0 after a signal, 1 if there is no page, the kubeconfig names no cluster, or the port is in use."""
    parsed = _parser().parse_args(arguments)
    import asyncio

    from pilothouse.client.config.kubeconfig import load_kubeconfig
    from pilothouse.client.config.model import ConfigError
    from pilothouse.console.page import PageNotBuilt, require_page

    try:
        require_page()
        config = load_kubeconfig(parsed.kubeconfig, context=parsed.context)
        asyncio.run(_show(config, parsed.port, parsed.open))
    except (PageNotBuilt, ConfigError, OSError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> CommandParser:
    description = "Open the web console of a cluster as the user of the kubeconfig. The printed URL is valid once."
    parser = CommandParser(prog="pilothouse console", description=description)
    add_kubeconfig_arguments(parser)
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; default: a free port")
    parser.add_argument("--no-open", dest="open", action="store_false", help="print the URL, do not open a browser")
    return parser


async def _show(config: ClientConfig, port: int, open_browser: bool) -> None:
    import asyncio
    import webbrowser

    from pilothouse.console.server import Console
    from pilothouse.machinery.platform import STOP_SIGNALS, on_signals

    stop = asyncio.Event()
    on_signals(STOP_SIGNALS, lambda _: stop.set())
    console = Console(config, port=port)
    address = await console.start()
    print(f"Console of {config.host}: {address}", flush=True)
    if open_browser:
        await asyncio.to_thread(webbrowser.open, address)
    await stop.wait()
    await console.close()
