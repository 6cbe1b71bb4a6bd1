"""What clients were told in one round, and whether it can be true."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from linear_models import CONFLICT, register, subset
from linearizability import UNKNOWN, Operation, Undecided, linearizable

from pilothouse.client import Json, name_of
from pilothouse.errors import (
    AlreadyExists,
    Conflict,
    ConnectionFailed,
    ConnectionRefused,
    InvalidResponse,
    NotFound,
    StatusError,
)

UNANSWERED = (StatusError, ConnectionFailed, InvalidResponse, TimeoutError)
_REFUSED = (AlreadyExists, Conflict, NotFound)


def value_of(obj: Json) -> str:
    return str((obj.get("data") or {}).get("value", ""))


@dataclass(frozen=True)
class Written:
    """An object as the server said that it has become."""

    revision: int
    name: str
    value: str


def revision_of(obj: Json) -> int:
    """Of an object or a list."""
    return int(obj["metadata"]["resourceVersion"])


def written(obj: Json) -> Written:
    return Written(revision_of(obj), name_of(obj), value_of(obj))


@dataclass
class Ledger:
    """`registers` and `sets` have the history of each; `acknowledged` and `removed` what watchers have to tell."""

    registers: defaultdict[str, list[Operation]] = field(default_factory=lambda: defaultdict(list))
    sets: defaultdict[str, list[Operation]] = field(default_factory=lambda: defaultdict(list))
    acknowledged: list[Written] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    refused: set[tuple[str, str]] = field(default_factory=set)  # names and values that must never be seen
    revisions: dict[tuple[str, str], int] = field(default_factory=dict)  # of each value of a register
    stale: int = 0
    reads: int = 0
    _newest: dict[str, int] = field(default_factory=dict)  # of each register, as far as somebody was told
    violations: list[str] = field(default_factory=list)

    async def read_register(self, name: str, ask: Callable[[], Awaitable[Json]]) -> Written | None:
        """Return the register as it was read; None where it is not there. Raises what is in UNANSWERED, as all do."""
        called, newest = time.monotonic(), self._newest.get(name, 0)
        try:
            found: Written | None = written(await ask())
        except NotFound:
            found = None
        self.reads += 1
        self._judge(name, found, newest)
        self._add(self.registers[name], "read", None, found.value if found else None, called)
        return found

    async def change(self, operation: str, name: str, argument: Any, ask: Callable[[], Awaitable[Json]]) -> None:
        """Create, write or compare a register."""
        answer = await self._write(self.registers[name], operation, argument, ask)
        if answer is None:
            self.refused.add((name, argument[1] if operation == "compare" else argument))
        else:
            self.acknowledged.append(written(answer))
            self._judge(name, self.acknowledged[-1], 0)

    async def alter(self, operation: str, name: str, number: int, ask: Callable[[], Awaitable[Json]]) -> None:
        """Add to a set or remove from it."""
        answer = await self._write(self.sets[name], operation, number, ask)
        if answer is not None and operation == "add":
            self.acknowledged.append(written(answer))
        elif answer is not None:
            self.removed.append(f"{name}-{number}")

    async def read_set(self, name: str, ask: Callable[[], Awaitable[Json]]) -> None:
        called = time.monotonic()
        found = await ask()
        self.reads += 1
        numbers = (int(name_of(item).rpartition("-")[2]) for item in found["items"])
        self._add(self.sets[name], "read", None, sum(1 << number for number in numbers), called)

    def check(self) -> None:
        """Add to `violations` the histories that no order explains."""
        for name, history in self.registers.items():
            self._check(name, history, lambda history: linearizable(None, register, history))
        for name, history in self.sets.items():
            self._check(name, history, lambda history: linearizable(0, subset, history))

    def lost(self) -> Iterator[str]:
        """Registers that somebody was told to be newer than they were at the end."""
        for name, history in self.registers.items():
            last = history[-1]
            if last.name == "read" and self.revisions.get((name, last.outcome), 0) < self._newest.get(name, 0):
                yield name

    def _check(self, name: str, history: list[Operation], holds: Callable[[list[Operation]], bool]) -> None:
        try:
            if not holds(history):
                self.violations.append(f"{name} is not linearizable: {history}")
        except Undecided:
            self.violations.append(f"{name} is too much to decide: {history}")

    async def _write(
        self, history: list[Operation], operation: str, argument: Any, ask: Callable[[], Awaitable[Json]]
    ) -> Json | None:
        """Return the answer; None where the server refused."""
        called = time.monotonic()
        try:
            answer = await ask()
        except ConnectionRefused:
            raise
        except _REFUSED:
            self._add(history, operation, argument, CONFLICT, called)
            return None
        except UNANSWERED:
            self._add(history, operation, argument, UNKNOWN, called)
            raise
        self._add(history, operation, argument, None, called)
        return answer

    def _judge(self, name: str, found: Written | None, newest: int) -> None:
        """A value has one revision, and nobody is told of one that is older than what was told before he asked."""
        revision = found.revision if found else 0
        if revision < newest:
            self.stale += 1
        if found and self.revisions.setdefault((name, found.value), revision) != revision:
            self.violations.append(f"{found} has been at revision {self.revisions[name, found.value]}, too")
        self._newest[name] = max(self._newest.get(name, 0), revision)

    def _add(self, history: list[Operation], name: str, argument: Any, outcome: Any, called: float) -> None:
        history.append(Operation(name, argument, outcome, called, time.monotonic()))
