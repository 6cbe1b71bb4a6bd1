"""Delivery of events: synchronous, or batched by a background task.

blocking         the request waits for the write; failed events are counted and dropped
blocking-strict  like blocking, but a failed RequestReceived event fails the request
batch            events are buffered, bounded in number and bytes; a full buffer counts and drops new events
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field
from typing import NamedTuple, Protocol

import orjson
from prometheus_client import Counter

from pilothouse.apiserver.audit.context import AuditSink
from pilothouse.apiserver.audit.truncation import Truncation
from pilothouse.apiserver.tallies import REGISTRY, CounterTally
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

EVENTS = CounterTally(
    "apiserver_audit_event",
    "[ALPHA] Counter of audit events generated and sent to the audit backend.",
    (),
    registry=REGISTRY,
)
ERRORS = Counter(
    "apiserver_audit_error_total",
    "[ALPHA] Counter of audit events that failed to be audited properly. Plugin identifies the plugin "
    "affected by the error.",
    ("plugin",),
    registry=REGISTRY,
)
LEVELS = CounterTally(
    "apiserver_audit_level",
    "[ALPHA] Counter of policy levels for audit events (1 per request).",
    ("level",),
    registry=REGISTRY,
)
REJECTED = Counter(
    "apiserver_audit_requests_rejected_total",
    "[ALPHA] Counter of apiserver requests rejected due to an error in audit logging backend.",
    registry=REGISTRY,
)


_log = logging.getLogger(__name__)

BLOCKING, BLOCKING_STRICT, BATCH = "blocking", "blocking-strict", "batch"


class Backend(AuditSink, Protocol):
    async def run(self) -> None:
        """Send batches until cancelled, then flush the buffer."""


class BlockingBackend:
    """Delivers events synchronously: requests wait for `send`."""

    def __init__(
        self, name: str, send: Callable[[list[Json]], Awaitable[None]], *, strict: bool, truncation: Truncation | None
    ) -> None:
        self._name = name
        self._send = send
        self._strict = strict
        self._truncation = truncation

    async def process(self, event: Json) -> bool:
        try:
            for batch in self._truncation.batches([event]) if self._truncation else [[event]]:
                await self._send(batch)
        except Exception as error:
            ERRORS.labels(self._name).inc()
            _log.error("audit plugin %s: %s", self._name, error)
            return not (self._strict and event["stage"] == "RequestReceived")
        return True

    async def run(self) -> None:
        await asyncio.Event().wait()


@dataclass(frozen=True, slots=True)
class BatchConfig:
    buffer_size: int = 10000
    buffer_bytes: int = 64 * 1024 * 1024
    """Maximum bytes of buffered and in-flight events."""
    max_size: int = 400
    max_wait: float = 30.0
    throttle: Callable[[], Awaitable[None]] | None = None
    """Wait until the next batch may be sent."""


class _Waiting(NamedTuple):
    event: Json
    size: int


@dataclass(slots=True)
class BatchBackend:
    name: str
    send: Callable[[list[Json]], Awaitable[None]]
    config: BatchConfig = field(default_factory=BatchConfig)
    truncation: Truncation | None = None
    _waiting: asyncio.Queue[_Waiting] = field(init=False)
    _bytes: int = 0  # buffered and in-flight bytes

    def __post_init__(self) -> None:
        self._waiting = asyncio.Queue(self.config.buffer_size)

    async def process(self, event: Json) -> bool:
        size = len(orjson.dumps(event))
        if self._waiting.full() or self._bytes + size > self.config.buffer_bytes:
            ERRORS.labels(self.name).inc()
            _log.error("audit plugin %s: the buffer is full, an event is lost", self.name)
            return True
        self._bytes += size
        self._waiting.put_nowait(_Waiting(event, size))
        return True

    async def run(self) -> None:
        try:
            while True:
                await self._empty(await self._gathered())
        finally:
            rest = [self._waiting.get_nowait() for _ in range(self._waiting.qsize())]
            for start in range(0, len(rest), self.config.max_size):
                await self._empty(rest[start : start + self.config.max_size])

    async def _empty(self, gathered: list[_Waiting]) -> None:
        try:
            events = [event for event, _ in gathered]
            for batch in self.truncation.batches(events) if self.truncation else [events]:
                if self.config.throttle is not None:
                    await self.config.throttle()
                try:
                    await self.send(batch)
                except Exception as error:
                    ERRORS.labels(self.name).inc(len(batch))
                    _log.error("audit plugin %s: %d events are lost: %s", self.name, len(batch), error)
        finally:
            self._bytes -= sum(size for _, size in gathered)

    async def _gathered(self) -> list[_Waiting]:
        """Return a full batch, or a partial batch after `max_wait` since the first event."""
        events = [await self._waiting.get()]
        try:
            async with asyncio.timeout(self.config.max_wait):
                while len(events) < self.config.max_size:
                    events.append(await self._waiting.get())
        except TimeoutError:
            pass
        except asyncio.CancelledError:
            for event in events:
                self._waiting.put_nowait(event)
            raise
        return events


class UnionBackend:
    def __init__(self, backends: Sequence[Backend]) -> None:
        self._backends = tuple(backends)

    async def process(self, event: Json) -> bool:
        kept = [await backend.process(event) for backend in self._backends]
        return all(kept)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as running:
            for backend in self._backends:
                running.create_task(backend.run())
