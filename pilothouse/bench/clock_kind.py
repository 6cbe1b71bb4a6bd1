"""The kind Clock (a singleton), which controls the server's time."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Final

from pilothouse.apiserver.server.checks import PING
from pilothouse.apiserver.server.health import READYZ, HealthCheck
from pilothouse.bench.definitions import API_VERSION, bench_resource, duration, number, record
from pilothouse.bench.served_kind import ServedKind
from pilothouse.bench.settled_kind import Quiescence
from pilothouse.kinds.definitions import flag_field, printer_column, text_field
from pilothouse.machinery.adjustable_time import AdjustableTime
from pilothouse.machinery.durations import format_duration, parse_duration
from pilothouse.machinery.objects import Json
from pilothouse.machinery.times import format_time, parse_time

NAME: Final = "server"

CLOCK: Final = bench_resource(
    "Clock",
    "clocks",
    "Clock controls the time of the server and everything in it: timestamps, expiry of events, leases and tokens,"
    " schedules, grace periods. A write returns after the change, when all timers that are due have run.",
    spec=record(
        "How time passes.",
        {
            "stopped": flag_field("Whether time advances by steps only."),
            "speed": {
                "type": "number",
                "minimum": 0.001,
                "maximum": 100000,
                "description": "Server seconds per real second; default: 1.",
            },
            "time": text_field("Time to set. The server removes the field afterwards.", format="date-time"),
            "step": duration("Duration to advance once. The server removes the field afterwards."),
        },
        rules={
            "!(has(self.time) && has(self.step))": "either time or step may be given",
            "!has(self.step) || !self.step.startsWith('-')": "a step goes forward",
        },
    ),
    status=record(
        "The current time.",
        {
            "time": text_field("Server time of this read.", format="date-time"),
            "ahead": text_field("Difference to the machine's clock.", maxLength=64),
            "steps": number("Number of steps."),
        },
    ),
    columns=[
        printer_column("Time", ".status.time"),
        printer_column("Ahead", ".status.ahead"),
        printer_column("Stopped", ".spec.stopped", "boolean"),
        printer_column("Speed", ".spec.speed", "number"),
    ],
    rules={f"self.metadata.name == '{NAME}'": f"there is one Clock, and its name is {NAME}"},
)


CHECK = HealthCheck("testing-clock-may-not-be-the-machines", PING.probe, endpoints=(READYZ,))
"""Marks a server with an adjustable clock in /readyz?verbose. Never fails."""


class ServerClock:
    """Owner of the Clock: applies its spec to the server's time."""

    kind: ServedKind

    def __init__(self, adjusted: AdjustableTime, quiescence: Quiescence) -> None:
        self._time = adjusted
        self._quiescence = quiescence
        self._steps = 0
        self._under_way: Json = {}

    async def ensure(self) -> None:
        """Create the object if it is missing, so that it can be patched."""
        if await self.kind.access.get(NAME) is None:
            obj: Json = {"apiVersion": API_VERSION, "kind": "Clock", "metadata": {"name": NAME}, "spec": {}}
            await self.kind.access.create(obj)

    async def hear(self, name: str, obj: Json | None) -> None:
        spec: Json = (obj or {}).get("spec") or {}
        speed = 0.0 if spec.get("stopped") else float(spec.get("speed", 1))
        if speed != self._time.speed:
            self._time.run_at(speed)
        request: Json = {field: spec[field] for field in ("time", "step") if field in spec}
        if request and request != self._under_way:
            self._under_way = request
            try:
                if "step" in request:
                    await self._time.step(parse_duration(request["step"]) / 1e9, self._quiescence.run_due_work)
                elif (moment := parse_time(request["time"])) is not None:
                    await self._time.set(moment.timestamp(), self._quiescence.run_due_work)
            finally:
                self._under_way = {}
            self._steps += 1
        self.kind.changed(NAME)

    def revised(self, name: str, obj: Json) -> Json | None:
        """Remove completed requests from the spec, so that the same request can be made again."""
        spec = {key: value for key, value in (obj.get("spec") or {}).items() if key not in ("time", "step")}
        moment = datetime.fromtimestamp(self._time.wall(), UTC)
        ahead = format_duration(round(self._time.wall() - time.time()) * 1_000_000_000)
        status = {"time": format_time(moment), "ahead": ahead, "steps": self._steps}
        return obj | {"spec": spec, "status": status}

    async def about_to_be_read(self) -> None:
        """Update the reported time."""
        self.kind.changed(NAME)
