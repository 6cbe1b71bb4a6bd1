"""SIGTERM and SIGINT: the first asks the server to stop, the second ends it at once."""

from __future__ import annotations

import asyncio
import logging
import os
import signal

log = logging.getLogger(__name__)

SECOND_SIGNAL_EXIT_CODE = 1


def stop_on_signal() -> asyncio.Event:
    """An event that the first signal sets."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _received, stop, number)
    return stop


def _received(stop: asyncio.Event, number: signal.Signals) -> None:
    if stop.is_set():
        log.error("Received %s again: ending at once", number.name)
        os._exit(SECOND_SIGNAL_EXIT_CODE)
    log.info("Received %s: shutting down", number.name)
    stop.set()
