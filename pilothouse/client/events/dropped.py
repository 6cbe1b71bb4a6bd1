"""Events that are dropped because too many wait: the first is told at once, those that follow together."""

from __future__ import annotations

import logging
import math

from pilothouse.client.clock import Clock

logger = logging.getLogger(__name__)

TOLD_EVERY = 30.0
"""Seconds between two lines in the log of one recorder."""


class DroppedEvents:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._untold = 0
        self._told_at = -math.inf

    def one_more(self, what: str) -> None:
        self._untold += 1
        if self._clock.now() - self._told_at >= TOLD_EVERY:
            logger.error("too many queued events, dropped %d, the last was %s", self._untold, what)
            self._untold, self._told_at = 0, self._clock.now()
