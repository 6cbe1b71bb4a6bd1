"""Exponential back-off with jitter."""

from __future__ import annotations

import random
from collections.abc import Iterator

_FIRST, _LAST = 0.05, 1.0


def delays() -> Iterator[float]:
    delay = _FIRST
    while True:
        yield delay * random.uniform(0.5, 1.0)
        delay = min(delay * 2, _LAST)
