"""Does to the server's time what the Clock says."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from pilothouse.apiserver.server.checks import PING
from pilothouse.apiserver.server.health import READYZ, HealthCheck
from pilothouse.bench.clock.definition import NAME
from pilothouse.bench.definitions import API_VERSION
from pilothouse.bench.served_kind import ServedKind
from pilothouse.bench.settling.rest import Rest
from pilothouse.machinery.adjustable_time import AdjustableTime
from pilothouse.machinery.durations import format_duration, parse_duration
from pilothouse.machinery.objects import Json
from pilothouse.machinery.times import format_time, parse_time

CHECK = HealthCheck("testing-clock-may-not-be-the-machines", PING.probe, endpoints=(READYZ,))
"""What /readyz?verbose says of a server whose time others may set. It never fails."""


class ServerClock:
    """Is an Owner."""

    kind: ServedKind

    def __init__(self, adjusted: AdjustableTime, rest: Rest) -> None:
        self._time = adjusted
        self._rest = rest
        self._steps = 0
        self._under_way: Json = {}

    async def ensure(self) -> None:
        """Have the object be there, so that it can be patched."""
        if await self.kind.access.get(NAME) is None:
            obj: Json = {"apiVersion": API_VERSION, "kind": "Clock", "metadata": {"name": NAME}, "spec": {}}
            await self.kind.access.create(obj)

    async def hear(self, name: str, obj: Json | None) -> None:
        spec: Json = (obj or {}).get("spec") or {}
        speed = 0.0 if spec.get("stopped") else float(spec.get("speed", 1))
        if speed != self._time.speed:
            self._time.run_at(speed)
        wish: Json = {field: spec[field] for field in ("time", "step") if field in spec}
        if wish and wish != self._under_way:
            self._under_way = wish
            try:
                if "step" in wish:
                    await self._time.step(parse_duration(wish["step"]) / 1e9, self._rest.let_work)
                elif (moment := parse_time(wish["time"])) is not None:
                    await self._time.set(moment.timestamp(), self._rest.let_work)
            finally:
                self._under_way = {}
            self._steps += 1
        self.kind.changed(NAME)

    def revised(self, name: str, obj: Json) -> Json | None:
        """What was done is taken out, so that the same can be asked for once more."""
        spec = {key: value for key, value in (obj.get("spec") or {}).items() if key not in ("time", "step")}
        moment = datetime.fromtimestamp(self._time.wall(), UTC)
        ahead = format_duration(round(self._time.wall() - time.time()) * 1_000_000_000)
        status = {"time": format_time(moment), "ahead": ahead, "steps": self._steps}
        return obj | {"spec": spec, "status": status}

    async def about_to_be_read(self) -> None:
        """It is later than it was."""
        self.kind.changed(NAME)
