"""How slow this machine is at the moment, so that limits in seconds mean the same amount of work everywhere."""

from __future__ import annotations

import time

_SECONDS_OF_REFERENCE = 0.0021
"""Processor time of one piece of work on an idle core of the machine on which the limits were set."""


def slowness(pieces: int = 1) -> float:
    """Return how many times longer than on the reference machine Python code takes now; at least 1.

    Other programs slow down a core that they share with this process, also where the system does not say so.
    """
    before = time.thread_time()
    for _ in range(pieces):
        _work()
    return max(1.0, (time.thread_time() - before) / pieces / _SECONDS_OF_REFERENCE)


def _work() -> None:
    numbers: dict[int, str] = {}
    for number in range(10_000):
        numbers[number % 1000] = str(number)
