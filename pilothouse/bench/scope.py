"""The time and the workers of a server with --testing, its traffic, and the programs that it serves."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from typing import Final

from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.apiserver.storage.cacher.events import EventType, WatchEvent
from pilothouse.apiserver.storage.cacher.watcher import CacheWatcher, DelegatingWatcher
from pilothouse.bench.definitions import GROUP
from pilothouse.client.idleness import Workers, registered_workers
from pilothouse.machinery.adjustable_time import AdjustableTime
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.server_time import go_by, going_by


@dataclass(frozen=True, slots=True)
class ServerScope:
    """Adjustable time and busy workers of one server."""

    time: AdjustableTime
    workers: Workers

    def around(self, handler: Handler) -> Handler:
        """Wrap a handler: the time of its requests is the time of this server."""

        async def answer(request: Request) -> Response:
            with going_by(self.time):
                return await handler(request)

        return answer


def new_scope() -> ServerScope:
    """Start a scope in the current task."""
    scope = ServerScope(AdjustableTime(), registered_workers())
    go_by(scope.time)
    return scope


_READ_VERBS: Final = frozenset({"get", "list", "watch", "head", "options"})
_PERIODIC: Final = frozenset({"leases", "events", "leasecandidates"})


class Traffic:
    """Counts requests in flight and writes, and follows programs, to detect quiescence."""

    def __init__(self, server_time: AdjustableTime) -> None:
        self.in_flight = 0
        self.changes = 0
        self.requests = 0
        self.programs = Programs(server_time)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Leave a request out of the count while a Fault holds the request."""
        self.in_flight -= 1
        try:
            yield
        finally:
            self.in_flight += 1

    async def counted(self, request: Request, handler: Handler, *, own: bool) -> Response:
        info = request.info
        self.requests += info.group != GROUP
        if info.group == GROUP or info.resource in _PERIODIC:
            return await handler(request)
        program = self.programs.of(request) if info.is_resource and not own else None
        if info.is_long_running:
            if program is not None and info.verb == "watch":
                request.watched = program.follow
            return await handler(request)
        self.in_flight += 1
        try:
            return await handler(request)
        finally:
            self.in_flight -= 1
            self.changes += info.is_resource and info.verb not in _READ_VERBS
            if program is not None:
                program.active()


@dataclass(frozen=True, slots=True)
class ProgramSelection:
    """Programs to wait for, and the quiet period in seconds. Agents are prefixes of the User-Agent header."""

    required: tuple[str, ...] = ()
    """Programs that must have an open watch. Empty: every program with an open watch."""
    ignored: tuple[str, ...] = ()
    quiet_for: float = 0.5
    by_server_time: bool = False

    def selects(self, agent: str) -> bool:
        return (not self.required or agent.startswith(self.required)) and not agent.startswith(self.ignored)


class Programs:
    """Programs outside of the server, by their User-Agent."""

    def __init__(self, server_time: AdjustableTime) -> None:
        self._server_time = server_time
        self._by_agent: dict[str, Program] = {}  # swept: at most _MAX_IDLE programs without an open watch

    def of(self, request: Request) -> Program:
        agent = request.header(b"user-agent")
        if (program := self._by_agent.get(agent)) is None:
            if len(self._by_agent) >= _MAX_IDLE:
                self._by_agent = {name: program for name, program in self._by_agent.items() if program.watches}
            program = self._by_agent[agent] = Program(agent, self._server_time)
        return program

    def busy(self, selection: ProgramSelection) -> list[str]:
        """Return the busy programs among the selected ones, with the reason."""
        programs = [program for program in self._by_agent.values() if selection.selects(program.agent)]
        missing = [
            f"{prefix} (has no open watch)"
            for prefix in selection.required
            if not any(program.watches and program.agent.startswith(prefix) for program in programs)
        ]
        return missing + [reason for program in programs if (reason := program.busy(selection))]


_MAX_IDLE: Final = 256
_RECONNECT_TIME: Final = 2.5
"""Seconds in which a program is expected to watch again after the server ended its watch."""


class Program:
    """A client outside of the server, followed by its open watches."""

    def __init__(self, agent: str, server_time: AdjustableTime) -> None:
        self.agent = agent
        self.watches: set[ProgramWatch] = set()
        self._server_time = server_time
        self._lost = -inf
        self.active()

    def active(self) -> None:
        """Record a request, or an event that was sent."""
        self._last, self._last_of_server = time.monotonic(), self._server_time.monotonic()

    def follow(self, watcher: CacheWatcher) -> CacheWatcher:
        """Return the watcher of a new watch."""
        watch = ProgramWatch(watcher, self)
        self.watches.add(watch)
        self._lost = -inf
        self.active()
        return watch

    def lost(self) -> None:
        """Record that the server ended a watch."""
        self._lost = time.monotonic()

    def busy(self, selection: ProgramSelection) -> str:
        """Return the name with the reason, or an empty string for a quiet program."""
        if not self.watches:
            return f"{self.agent} (watches again)" if time.monotonic() - self._lost < _RECONNECT_TIME else ""
        if any(watch.has_unread for watch in self.watches):
            return f"{self.agent} (undelivered events)"
        if selection.by_server_time:
            quiet = self._server_time.monotonic() - self._last_of_server
        else:
            quiet = time.monotonic() - self._last
        return f"{self.agent} (was active {quiet:.1f}s ago)" if quiet < selection.quiet_for else ""


class ProgramWatch(DelegatingWatcher):
    """Delegates to the watcher of a program's watch, and records its events."""

    def __init__(self, watcher: CacheWatcher, program: Program) -> None:
        super().__init__(watcher)
        self._program = program

    async def __anext__(self) -> WatchEvent:
        try:
            event = await super().__anext__()
        except Exception:
            self._program.lost()
            raise
        if event.type != EventType.BOOKMARK:
            self._program.active()
        return event

    @property
    def has_unread(self) -> bool:
        return self._watcher.has_unread and not self._watcher.is_held

    def abandon(self) -> None:
        super().abandon()
        self._program.watches.discard(self)
