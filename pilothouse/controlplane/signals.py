"""SIGTERM and SIGINT: the first signal starts an orderly shutdown, the second signal exits at once.

`timeout` and some shells send each signal twice, to the process and to its group. A repeat within SAME_WISH seconds
counts as the same signal.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal

from pilothouse.machinery.platform import STOP_SIGNALS, on_signals

log = logging.getLogger(__name__)

SAME_WISH = 0.1


def first_signal_message(name: str) -> str:
    return f"Received {name}: stopping; a second signal (Ctrl-C) stops at once"


def second_signal_message(name: str) -> str:
    return f"Received {name} again: stopping now"


def second_signal_exit_code(number: int) -> int:
    """Return the exit code that shells report for a process that a signal ended: 130 for Ctrl-C."""
    return 128 + number


def stop_on_signal(*, insist: bool = True) -> asyncio.Event:
    """Return an event that the first signal sets. With `insist`, a second signal exits the process."""
    wish = _Wish(insist=insist)
    on_signals(STOP_SIGNALS, wish.received)
    return wish.stop


class _Wish:
    def __init__(self, *, insist: bool) -> None:
        self.stop = asyncio.Event()
        self._insist = insist
        self._first = float("inf")

    def received(self, number: signal.Signals) -> None:
        now = asyncio.get_running_loop().time()
        if not self.stop.is_set():
            log.info(first_signal_message(number.name) if self._insist else f"Received {number.name}: stopping")
            self._first = now
            self.stop.set()
        elif self._insist and now - self._first > SAME_WISH:
            log.error(second_signal_message(number.name))
            os._exit(second_signal_exit_code(number))
