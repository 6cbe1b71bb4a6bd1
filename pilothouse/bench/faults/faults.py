"""All active faults, sorted by name, and the client connections that a fault can close.

The first fault that hits a request handles it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import orjson

from pilothouse.apiserver.http import Handler, Request, Response, body_in_memory
from pilothouse.apiserver.storage.interface import MAX_REQUEST, Store
from pilothouse.bench.faults.fault import Fault, Selector
from pilothouse.bench.faults.filter import Misbehavior
from pilothouse.bench.scope import Traffic
from pilothouse.bench.served_kind import ServedKind
from pilothouse.machinery.errors import RequestEntityTooLarge
from pilothouse.machinery.objects import Json

_CLOSE_DELAY: Final = 0.05
"""Seconds before connections are closed, so that the writer of the fault gets its response."""

_SWEEP_THRESHOLD = 1024


class Faults:
    """Owner of Faults."""

    kind: ServedKind

    def __init__(self, store: Store, connections: Connections, traffic: Traffic) -> None:
        self._connections = connections
        self._misbehavior = Misbehavior(store, traffic)
        self._by_name: dict[str, Fault] = {}

    async def hear(self, name: str, obj: Json | None) -> None:
        before = self._by_name.get(name)
        if obj is None or "deletionTimestamp" in obj["metadata"]:
            self._by_name.pop(name, None)
            if before is not None:
                before.deleted.set()
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

    def get(self, name: str) -> Fault | None:
        """Return an active fault."""
        return self._by_name.get(name)

    async def answer(
        self, request: Request, handler: Handler, *, own: bool, on_hit: Callable[[Fault], None] = lambda fault: None
    ) -> Response:
        """Handle a request, subject to the faults. Raises StatusError of a fault, and the errors of the handler.

        Effects on events add up; otherwise the first fault that hits the request handles it.
        """
        if not self._by_name:
            return await handler(request)
        object_name = await _object_name(request) if any(one.match.names for one in self._by_name.values()) else ""
        for name, fault in self._by_name.items():
            if fault.effect.get("closeConnections") or not fault.hit(request, object_name, own=own):
                continue
            self.kind.changed(name)
            if "events" in fault.effect:
                self._misbehavior.select_events(fault, request)
                continue
            on_hit(fault)
            return await self._misbehavior.answer(fault, request, handler)
        return await handler(request)

    def _close_connections(self, fault: Fault) -> None:
        fault.hits += self._connections.close(fault.match.who)
        self.kind.changed(fault.name)


async def _object_name(request: Request) -> str:
    """Return the name in the path, or the name in the JSON body of a create."""
    if request.info.name or request.info.verb != "create":
        return request.info.name
    body = await read_early(request)
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return ""
    metadata = value.get("metadata") if isinstance(value, dict) else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else ""


async def read_early(request: Request) -> bytes:
    """Read the body before its handler does; the handler reads the same bytes. Empty for a body that is too large."""
    try:
        body = await request.read_body(MAX_REQUEST)
    except RequestEntityTooLarge:
        return b""
    request.read_body = body_in_memory(body)
    return body


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
