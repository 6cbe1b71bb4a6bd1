"""All active faults, sorted by name. The first fault that hits a request handles it."""

from __future__ import annotations

import asyncio
from typing import Final

from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.apiserver.storage.interface import Store
from pilothouse.bench.connections import Connections
from pilothouse.bench.faults.fault import Fault
from pilothouse.bench.faults.filter import Misbehavior
from pilothouse.bench.served_kind import ServedKind
from pilothouse.machinery.objects import Json

_CLOSE_DELAY: Final = 0.05
"""Seconds before connections are closed, so that the writer of the fault gets its response."""


class Faults:
    """Owner of Faults."""

    kind: ServedKind

    def __init__(self, store: Store, connections: Connections) -> None:
        self._connections = connections
        self._misbehavior = Misbehavior(store)
        self._by_name: dict[str, Fault] = {}

    async def hear(self, name: str, obj: Json | None) -> None:
        before = self._by_name.get(name)
        if obj is None or "deletionTimestamp" in obj["metadata"]:
            self._by_name.pop(name, None)
        elif before is None or before.spec != obj["spec"]:
            fault = Fault(name, obj, before)
            self._by_name = dict(sorted((self._by_name | {fault.name: fault}).items()))
            if fault.effect.get("closeConnections") and not fault.hits:
                asyncio.get_running_loop().call_later(_CLOSE_DELAY, self._close_connections, fault)
            self.kind.changed(fault.name)

    def revised(self, name: str, obj: Json) -> Json | None:
        fault = self._by_name.get(name)
        return None if fault is None else obj | {"status": fault.status}

    async def about_to_be_read(self) -> None:
        """Do nothing: changes are reported immediately."""

    async def answer(self, request: Request, handler: Handler, *, own: bool) -> Response:
        """Handle a request, subject to the faults. Raises StatusError of a fault, and the errors of the handler."""
        for name, fault in self._by_name.items():
            if not fault.effect.get("closeConnections") and fault.hit(request, own=own):
                self.kind.changed(name)
                return await self._misbehavior.answer(fault, request, handler)
        return await handler(request)

    def _close_connections(self, fault: Fault) -> None:
        fault.hits += self._connections.close(fault.match.who)
        self.kind.changed(fault.name)
