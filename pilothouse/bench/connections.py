"""Client connections with their users, so that a fault can close them."""

from __future__ import annotations

import asyncio

from pilothouse.apiserver.http import Request
from pilothouse.bench.faults.fault import Selector

_SWEEP_THRESHOLD = 1024


class Connections:
    """Tracks open connections. Closed connections are swept from time to time."""

    def __init__(self) -> None:
        self._users: dict[asyncio.Transport, tuple[str, str]] = {}

    def track(self, request: Request) -> None:
        if request.transport is not None:
            if len(self._users) >= _SWEEP_THRESHOLD and request.transport not in self._users:
                self._users = {transport: user for transport, user in self._users.items() if not transport.is_closing()}
            self._users[request.transport] = (request.user.name, request.header(b"user-agent"))

    def close(self, selector: Selector) -> int:
        """Abort the connections that the selector matches; return their number."""
        matching = [
            transport
            for transport, (user, agent) in self._users.items()
            if selector.fits(user, agent) and not transport.is_closing()
        ]
        for transport in matching:
            transport.abort()
        self._users = {transport: user for transport, user in self._users.items() if not transport.is_closing()}
        return len(matching)
