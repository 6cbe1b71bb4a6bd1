"""Rate-limited queue of the nodes in a zone to be tainted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from pilothouse.client.clock import Clock
from pilothouse.client.flowcontrol import TokenBucket

_BURST = 1


class TaintQueue:
    """Queue of nodes to taint. Each node is handed out once until removed, so that a node is not tainted twice."""

    _known: set[str]  # nodes added and not removed
    _waiting: dict[str, None]  # known nodes not handed out yet, oldest first

    def __init__(self, rate: float, clock: Clock) -> None:
        self._clock = clock
        self._rate = rate
        self._bucket: TokenBucket | None = _bucket(rate, clock)
        self._known = set()
        self._waiting = {}

    @property
    def has_waiting(self) -> bool:
        return bool(self._waiting)

    def add(self, node: str) -> bool:
        """Add the node; return whether it is new."""
        if node in self._known:
            return False
        self._known.add(node)
        self._waiting[node] = None
        return True

    def remove(self, node: str) -> bool:
        """Remove the node; return whether it was known."""
        was_here = node in self._known
        self._known.discard(node)
        self._waiting.pop(node, None)
        return was_here

    async def work(self, taint: Callable[[str], Awaitable[bool]]) -> None:
        """Call `taint` for as many nodes as the rate allows; False = retry the node later."""
        for node in [*self._waiting]:
            if self._bucket is None or not self._bucket.try_accept():
                return
            if await taint(node):
                self._waiting.pop(node, None)

    def set_rate(self, rate: float) -> None:
        """Set the rate; 0 = pause. An exhausted limiter stays exhausted."""
        if rate == self._rate:
            return
        bucket = _bucket(rate, self._clock)
        if bucket is not None and not (self._bucket is not None and self._bucket.try_accept()):
            bucket.try_accept()
        self._rate, self._bucket = rate, bucket


def _bucket(rate: float, clock: Clock) -> TokenBucket | None:
    return TokenBucket(rate, _BURST, clock) if rate > 0 else None
