"""The nodes of a zone that wait to be tainted, at a rate that changes with the health of the zone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from pilothouse.client.clock import Clock
from pilothouse.client.flowcontrol import TokenBucket

_BURST = 1


class TaintQueue:
    """Each node is handed out once until it is removed, so that a node that was tainted is not tainted again."""

    _known: set[str]  # nodes that were added and not removed
    _waiting: dict[str, None]  # those of them that were not handed out, oldest first

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
        """Return whether the node is new here."""
        if node in self._known:
            return False
        self._known.add(node)
        self._waiting[node] = None
        return True

    def remove(self, node: str) -> bool:
        """Return whether the node was here."""
        was_here = node in self._known
        self._known.discard(node)
        self._waiting.pop(node, None)
        return was_here

    async def work(self, taint: Callable[[str], Awaitable[bool]]) -> None:
        """Hand out as many nodes as the rate allows now. One for which False is returned comes again."""
        for node in [*self._waiting]:
            if self._bucket is None or not self._bucket.try_accept():
                return
            if await taint(node):
                self._waiting.pop(node, None)

    def set_rate(self, rate: float) -> None:
        """Go on at this rate, 0 for not at all. One who had to wait has to wait still."""
        if rate == self._rate:
            return
        bucket = _bucket(rate, self._clock)
        if bucket is not None and not (self._bucket is not None and self._bucket.try_accept()):
            bucket.try_accept()
        self._rate, self._bucket = rate, bucket


def _bucket(rate: float, clock: Clock) -> TokenBucket | None:
    return TokenBucket(rate, _BURST, clock) if rate > 0 else None
