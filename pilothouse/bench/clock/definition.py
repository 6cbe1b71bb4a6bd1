"""The kind Clock, of which there is one."""

from __future__ import annotations

from typing import Final

from pilothouse.bench.definitions import bench_resource, duration, number, record
from pilothouse.kinds.definitions import flag_field, printer_column, text_field

NAME: Final = "server"

CLOCK: Final = bench_resource(
    "Clock",
    "clocks",
    "Clock is the time by which the server and all that runs in it go: timestamps, expiry of events, leases and tokens,"
    " schedules, grace periods. A write is answered when it is that time, and what was due has had its turn.",
    spec=record(
        "How time passes.",
        {
            "stopped": flag_field("Whether no time passes but by steps."),
            "speed": {
                "type": "number",
                "minimum": 0.001,
                "maximum": 100000,
                "description": "How many seconds pass in one; 1, if it is not given.",
            },
            "time": text_field("What time it is to be. It is taken out when it is.", format="date-time"),
            "step": duration("How far to go forward, once. It is taken out when that is done."),
        },
        rules={
            "!(has(self.time) && has(self.step))": "either time or step may be given",
            "!has(self.step) || !self.step.startsWith('-')": "a step goes forward",
        },
    ),
    status=record(
        "What time it is.",
        {
            "time": text_field("The time, when this was read.", format="date-time"),
            "ahead": text_field("By how much it is ahead of the machine's.", maxLength=64),
            "steps": number("How many steps were taken."),
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
