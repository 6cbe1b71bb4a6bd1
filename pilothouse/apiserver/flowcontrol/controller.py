"""Applies flow schemas and priority levels: classifies requests, and assigns seats to levels.

Seats are lent between levels every ten seconds. Missing mandatory objects are added to the configuration, so every
request matches a flow schema.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.flowcontrol.levels import PriorityLevel, adjust, new_level
from pilothouse.apiserver.flowcontrol.mandatory import CATCH_ALL, MANDATORY_LEVELS, MANDATORY_SCHEMAS
from pilothouse.apiserver.flowcontrol.matching import FlowSchema
from pilothouse.apiserver.flowcontrol.pacing import Pacer
from pilothouse.apiserver.flowcontrol.series import FlowSeries
from pilothouse.apiserver.flowcontrol.shuffle_sharding import flow_hash
from pilothouse.apiserver.flowcontrol.use import KindUse
from pilothouse.apiserver.request_info import RequestInfo
from pilothouse.apiserver.server.run_options import ServerRunOptions
from pilothouse.machinery.bounded_cache import BoundedCache
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, name_of

BEGIN_AT_ONCE = 4
"""Requests started per turn of the event loop; see docs/decisions/fairness.md."""
_ADJUST_EVERY = 10.0
_REMEMBERED, _REMEMBERED_BYTES = 10_000, 8 << 20


@dataclass(slots=True, eq=False)
class Flow:
    """A flow: requests within a flow are FIFO; flows share seats fairly."""

    schema: FlowSchema
    level: PriorityLevel
    distinguisher: str
    entropy: int
    headers: tuple[tuple[bytes, bytes], ...]
    series: FlowSeries
    is_exempt: bool


class FlowController:
    def __init__(self, limit: int, *, begin_at_once: int, now: Callable[[], float] = time.monotonic) -> None:
        """`limit`: number of seats. `begin_at_once`: requests started per turn of the event loop."""
        self._limit = limit
        self._now = now
        self.pacer = Pacer(begin_at_once)
        self._schemas: list[FlowSchema] = []
        self._flows: BoundedCache[Hashable, Flow] = BoundedCache(entries=_REMEMBERED, total_bytes=_REMEMBERED_BYTES)
        """Classification key → flow; cleared when the configuration changes."""
        self.levels: dict[str, PriorityLevel] = {}
        self.fair_fraction = 0.0
        self.reads, self.writes = KindUse(now), KindUse(now)
        self.configure([], [])

    @classmethod
    def of(cls, options: ServerRunOptions) -> FlowController | None:
        """Build a controller with the sum of both limits; None if disabled or unlimited."""
        reads, writes = options.max_requests_inflight, options.max_mutating_requests_inflight
        if not options.enable_priority_and_fairness or not (reads and writes):
            return None
        return cls(reads + writes, begin_at_once=BEGIN_AT_ONCE)

    @property
    def flows(self) -> Iterator[tuple[str, str]]:
        """Yield (priority level, flow schema) names."""
        return ((schema.level, schema.name) for schema in self._schemas)

    def configure(self, schemas: Iterable[Json], levels: Iterable[Json]) -> None:
        """Apply a new configuration. Executing and queued requests stay in place."""
        self._configure_levels({name_of(level): level for level in (*_named(MANDATORY_LEVELS), *levels)})
        known = [FlowSchema(schema) for schema in (*_named(MANDATORY_SCHEMAS), *schemas)]
        latest = {schema.name: schema for schema in known if schema.level in self.levels}
        self._schemas = sorted(latest.values(), key=lambda schema: schema.order)
        self._flows.clear()
        self.adjust()

    def _configure_levels(self, wanted: dict[str, Json]) -> None:
        for name, config in wanted.items():
            level = self.levels.get(name)
            if level is None:
                self.levels[name] = level = new_level(config, self._now)
            level.uid, level.spec = (config.get("metadata") or {}).get("uid") or "", config["spec"]
            level.quiescing = False
        for name in [name for name in self.levels if name not in wanted]:
            self.levels[name].quiescing = True
            if self.levels[name].queues.is_idle:
                del self.levels[name]
        shares = sum(level.shares for level in self.levels.values())
        for level in self.levels.values():
            level.divide(self._limit, shares)
        executing = sum(level.nominal for level in self.levels.values())
        waiting = sum(level.queuing.places for level in self.levels.values())
        for kind in (self.reads, self.writes):
            kind.set_limits(executing=executing, waiting=waiting)

    def flow_of(self, user: User, info: RequestInfo) -> Flow:
        key: tuple[Any, ...]
        if info.is_resource:
            key = (user.name, user.groups, info.verb, info.group, info.resource, info.subresource, info.namespace)
        else:
            key = (user.name, user.groups, info.verb, info.path)
        flow = self._flows.get(key)
        if flow is None:
            flow = self._new_flow(user, info)
            self._flows.put(key, flow, size=768 + 2 * user.size + sum(map(len, key[2:])))
        return flow

    def _new_flow(self, user: User, info: RequestInfo) -> Flow:
        schema = next((each for each in self._schemas if each.matches(user, info)), None) or self._catch_all
        level = self.levels[schema.level]
        distinguisher = schema.flow(user, info) if level.queuing.queues > 1 else ""
        headers = (
            (b"x-kubernetes-pf-flowschema-uid", schema.uid.encode()),
            (b"x-kubernetes-pf-prioritylevel-uid", level.uid.encode()),
        )
        return Flow(
            schema,
            level,
            distinguisher,
            flow_hash(schema.name, distinguisher),
            headers,
            FlowSeries(level.name, schema.name),
            is_exempt=level.is_exempt,
        )

    @property
    def _catch_all(self) -> FlowSchema:
        return next(schema for schema in self._schemas if schema.name == CATCH_ALL)

    def adjust(self) -> None:
        """Lend unused seats of levels to levels with higher demand."""
        self.fair_fraction = adjust(self.levels.values())
        for level in self.levels.values():
            seats = level.queues.limit or round(self._limit / 10)
            level.queues.use.set_limits(seats=seats, waiting=level.queuing.places)

    async def run(self) -> None:
        """Adjust the seats periodically until cancelled."""
        while True:
            await asyncio.sleep(_ADJUST_EVERY)
            self.adjust()


def _named(specs: dict[str, Json]) -> list[Json]:
    return [{"metadata": {"name": name}, "spec": spec} for name, spec in specs.items()]
