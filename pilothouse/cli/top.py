"""`pilothouse top`: show the load of a running server in the terminal."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from pilothouse.cli.arguments import CommandParser, add_kubeconfig_arguments

if TYPE_CHECKING:
    from rich.console import RenderableType

    from pilothouse.cli.monitor.scrape import Scrape
    from pilothouse.client.config.model import ClientConfig
    from pilothouse.client.rest.client import Client


def main(arguments: Sequence[str]) -> int:
    """Return 0 after Ctrl-C or `--once`; 1 if the server is unreachable or denies this user its metrics."""
    parsed = _parser().parse_args(arguments)
    from pilothouse.client.config.kubeconfig import load_kubeconfig
    from pilothouse.client.config.model import ConfigError
    from pilothouse.client.rest.errors import ConnectionFailed
    from pilothouse.machinery.status_error import StatusError

    try:
        config = load_kubeconfig(parsed.kubeconfig, context=parsed.context)
        asyncio.run(_once(config, parsed.interval) if parsed.once else _show(config, parsed.interval))
    except KeyboardInterrupt:
        return 0
    except (ConfigError, ConnectionFailed, OSError, StatusError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> CommandParser:
    description = "Show requests, watches, queues, store and workers of a server. Press Ctrl-C to quit."
    parser = CommandParser(prog="pilothouse top", description=description)
    add_kubeconfig_arguments(parser)
    help_ = "seconds between updates (default: 2)"
    parser.add_argument("--interval", type=_interval, default=2.0, metavar="SECONDS", help=help_)
    parser.add_argument("--once", action="store_true", help="print the figures of one interval and exit")
    return parser


async def _once(config: ClientConfig, interval: float) -> None:
    from rich.console import Console

    from pilothouse.cli.monitor.scrape import scrape
    from pilothouse.client.rest.connect import connect

    async with connect(config) as client:
        before = await scrape(client)
        await asyncio.sleep(interval)
        Console().print(_screen(before, await scrape(client), config))


async def _show(config: ClientConfig, interval: float) -> None:
    """Update the screen every interval. Errors after the first scrape are shown, and the scrape is retried."""
    from rich.live import Live

    from pilothouse.cli.monitor.scrape import scrape
    from pilothouse.client.rest.connect import connect

    async with connect(config) as client:
        before = await scrape(client)
        with Live(screen=True, auto_refresh=False) as live:
            while True:
                await asyncio.sleep(interval)
                content, before = await _next(client, before, config)
                live.update(content, refresh=True)


async def _next(client: Client, before: Scrape, config: ClientConfig) -> tuple[RenderableType, Scrape]:
    from rich.text import Text

    from pilothouse.cli.monitor.scrape import scrape
    from pilothouse.client.rest.errors import ConnectionFailed
    from pilothouse.machinery.status_error import StatusError

    try:
        after = await scrape(client)
    except (ConnectionFailed, StatusError) as error:
        return Text(f"{config.host}: {error}", "red"), before
    return _screen(before, after, config), after


def _screen(before: Scrape, after: Scrape, config: ClientConfig) -> RenderableType:
    from pilothouse.cli.monitor.figures import Between
    from pilothouse.cli.monitor.screen import screen

    return screen(Between(before, after, time.time()).figures(), config.host)


def _interval(text: str) -> float:
    with suppress(ValueError):
        if 0.1 <= (value := float(text)) <= 3600:
            return value
    raise argparse.ArgumentTypeError("a number of seconds from 0.1 to 3600")
