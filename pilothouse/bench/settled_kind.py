"""The kind Settled: reports when the server is quiescent."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from pilothouse.apiserver.storage.cacher.cacher import cachers_of
from pilothouse.apiserver.storage.interface import Store
from pilothouse.bench.definitions import bench_resource, duration, record, texts
from pilothouse.bench.scope import ProgramSelection, ServerScope, Traffic
from pilothouse.bench.served_kind import ServedKind
from pilothouse.kinds.definitions import flag_field, printer_column, text_field
from pilothouse.machinery.durations import parse_duration
from pilothouse.machinery.event_loop import yield_to_loop
from pilothouse.machinery.objects import Json
from pilothouse.machinery.times import now

CONDITIONS: Final[Json] = {
    "type": "array",
    "description": "Conditions of the object.",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
    "items": record(
        "One condition.",
        {
            "type": text_field("Type of the condition."),
            "status": text_field("Whether the condition holds.", enum=["True", "False", "Unknown"]),
            "reason": text_field("Reason, in one word."),
            "message": text_field("Reason, in a sentence."),
            "lastTransitionTime": text_field("Time of the last change.", format="date-time"),
        },
        required=["type", "status"],
    ),
}
SETTLED: Final = bench_resource(
    "Settled",
    "settleds",
    "Settled is true once the server is quiescent: no request is in flight, no controller, scheduler or simulated"
    " node has work, no event is undelivered, no program that watches has sent another request, and nothing has"
    " changed for a moment. It reports once; create another to wait again.",
    spec=record(
        "Wait parameters.",
        {
            "quietFor": duration("Minimum duration without activity; default: 100ms."),
            "timeout": duration("Timeout; default: 30s."),
            "programs": record(
                "Programs outside of the server, such as an operator under test: clients with an open watch.",
                {
                    "userAgents": texts(
                        "Prefixes of the User-Agent header of programs that must have an open watch; default: every"
                        " program that has one."
                    ),
                    "ignoredUserAgents": texts("Prefixes of the User-Agent header of programs to ignore."),
                    "quietFor": duration(
                        "Minimum duration since the last request of a program that is no watch, and since the last"
                        " event that was sent to the program; default: 500ms."
                    ),
                    "clock": text_field("Clock of quietFor; default: Real.", enum=["Real", "Server"]),
                },
            ),
        },
    ),
    status=record(
        "The result; absent while waiting.",
        {
            "settled": flag_field("Whether the server became quiescent in time."),
            "waitingFor": texts("Components that were still busy at the timeout."),
            "conditions": CONDITIONS,
        },
    ),
    columns=[
        printer_column("Settled", ".status.settled", "boolean"),
        printer_column("Waiting For", ".status.waitingFor"),
    ],
)


_QUIET_FOR: Final = "100ms"
_TIMEOUT: Final = "30s"
_PROGRAMS_QUIET_FOR: Final = "500ms"


class SettledObjects:
    """Owner of Settled objects."""

    kind: ServedKind

    def __init__(self, quiescence: Quiescence) -> None:
        self._quiescence = quiescence
        self._waiting: dict[str, asyncio.Task[None]] = {}
        self._status: dict[str, Json] = {}

    async def hear(self, name: str, obj: Json | None) -> None:
        if obj is None:
            self._forget(name)
        elif not obj.get("status") and name not in self._waiting:
            self._waiting[name] = asyncio.create_task(self._wait(name, obj.get("spec") or {}), name=f"settled {name}")

    def revised(self, name: str, obj: Json) -> Json | None:
        return obj | {"status": status} if (status := self._status.get(name)) else None

    async def about_to_be_read(self) -> None:
        """Do nothing: changes are reported immediately."""

    async def stop(self) -> None:
        for name in [*self._waiting]:
            self._forget(name)

    async def _wait(self, name: str, spec: Json) -> None:
        quiet_for, timeout = spec.get("quietFor") or _QUIET_FOR, spec.get("timeout") or _TIMEOUT
        busy = await self._quiescence.wait(
            _programs(spec.get("programs") or {}),
            quiet_for=parse_duration(quiet_for) / 1e9,
            timeout=parse_duration(timeout) / 1e9,
        )
        reason, message = ("AtRest", "") if not busy else ("StillWorking", f"after {timeout}: {', '.join(busy)}")
        self._status[name] = {
            "settled": not busy,
            **({"waitingFor": busy[:64]} if busy else {}),
            "conditions": [condition("Settled", not busy, reason, message)],
        }
        self.kind.changed(name)

    def _forget(self, name: str) -> None:
        self._status.pop(name, None)
        if (task := self._waiting.pop(name, None)) is not None:
            task.cancel()


def _programs(spec: Json) -> ProgramSelection:
    return ProgramSelection(
        tuple(spec.get("userAgents") or ()),
        tuple(spec.get("ignoredUserAgents") or ()),
        parse_duration(spec.get("quietFor") or _PROGRAMS_QUIET_FOR) / 1e9,
        by_server_time=spec.get("clock") == "Server",
    )


_POLL_INTERVAL: Final = 0.01
_MIN_POLLS: Final = 8
_SOON: Final = 0.5
"""Seconds. Work that is scheduled within this time, such as a retry, counts as busy."""
_STEP_TIMEOUT: Final = 0.25


class Quiescence:
    """Detects when the server is quiescent."""

    def __init__(self, traffic: Traffic, scope: ServerScope, store: Store) -> None:
        self._store = store
        self._traffic = traffic
        self._scope = scope

    def busy(self, within: float = _SOON) -> list[str]:
        """Return the names of busy components; empty if quiescent. Scheduled work does not count while time is
        stopped.
        """
        within = within if self._scope.time.speed else 0.0
        requests = [f"{count} requests"] if (count := self._traffic.in_flight) else []
        caches = ["watch caches"] if any(cacher.followers_behind for cacher in list(cachers_of(self._store))) else []
        return requests + caches + self._scope.workers.busy(within)

    async def wait(self, programs: ProgramSelection, *, quiet_for: float, timeout: float) -> list[str]:
        """Wait for quiescence. Return the components that are still busy at the timeout."""
        end, quiet_since, changes = time.monotonic() + timeout, time.monotonic(), self._traffic.changes
        quiet_polls = 0  # consecutive quiet polls, so that a slow machine does not look quiescent
        while True:
            now = time.monotonic()
            busy, busy_programs = self.busy(), self._traffic.programs.busy(programs)
            if busy or changes != self._traffic.changes:
                quiet_since, changes, quiet_polls = now, self._traffic.changes, 0
            elif now - quiet_since >= quiet_for and quiet_polls >= _MIN_POLLS and not busy_programs:
                return []
            quiet_polls += 1
            if now >= end:
                return busy + busy_programs or ["objects that keep changing"]
            await asyncio.sleep(_POLL_INTERVAL)

    async def run_due_work(self) -> None:
        """Wait until work started by timers is done, or until a short timeout."""
        end = time.monotonic() + _STEP_TIMEOUT
        for _ in range(5):
            await yield_to_loop()
        while self.busy(within=0.0) and time.monotonic() < end:  # noqa: ASYNC110
            await asyncio.sleep(0.001)


def condition(kind: str, holds: bool, reason: str, message: str = "") -> Json:
    return {
        "type": kind,
        "status": "True" if holds else "False",
        "reason": reason,
        "message": message,
        "lastTransitionTime": now(),
    }
