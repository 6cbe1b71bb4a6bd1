"""`pilothouse console`: a page that shows a cluster, on this machine and for its user only."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pilothouse.client.config.model import ClientConfig


def main(arguments: Sequence[str]) -> int:
    """0 after a signal, 1 where there is no page, no cluster in the kubeconfig, or the port is taken."""
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


async def _show(config: ClientConfig, port: int, opens: bool) -> None:
    import asyncio
    import webbrowser

    from pilothouse.console.server import Console
    from pilothouse.machinery.platform import STOP_SIGNALS, on_signals

    stop = asyncio.Event()
    on_signals(STOP_SIGNALS, lambda _: stop.set())
    console = Console(config, port=port)
    address = await console.start()
    print(f"Console of {config.host}: {address}", flush=True)
    if opens:
        await asyncio.to_thread(webbrowser.open, address)
    await stop.wait()
    await console.close()


def _parser() -> argparse.ArgumentParser:
    description = "Show a cluster in the browser, as the user of its kubeconfig. The printed address works once."
    parser = argparse.ArgumentParser(prog="pilothouse console", description=description)
    parser.add_argument("--kubeconfig", type=Path, help="of the cluster; the usual places if not given")
    parser.add_argument("--context", default="", help="of the kubeconfig; its current one if not given")
    parser.add_argument("--port", type=int, default=0, help="on 127.0.0.1; any free one if not given")
    parser.add_argument("--no-open", dest="open", action="store_false", help="only print the address")
    return parser
