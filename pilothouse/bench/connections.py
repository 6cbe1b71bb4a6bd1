"""The connections that requests came by, with who used them: so that a fault can close them."""

from __future__ import annotations

import asyncio

from pilothouse.apiserver.http import Request
from pilothouse.bench.faults.matching import Selector

_SWEPT_AT = 1024


class Connections:
    """Only those that are still open are kept, and a few more."""

    def __init__(self) -> None:
        self._users: dict[asyncio.Transport, tuple[str, str]] = {}

    def used_by(self, request: Request) -> None:
        if request.transport is not None:
            if len(self._users) >= _SWEPT_AT and request.transport not in self._users:
                self._users = {open_: who for open_, who in self._users.items() if not open_.is_closing()}
            self._users[request.transport] = (request.user.name, request.header(b"user-agent"))

    def close(self, who: Selector) -> int:
        """Close those of whom the selector means, at once; return how many these were."""
        meant = [each for each, (user, agent) in self._users.items() if who.fits(user, agent) and not each.is_closing()]
        for transport in meant:
            transport.abort()
        self._users = {open_: user for open_, user in self._users.items() if not open_.is_closing()}
        return len(meant)
