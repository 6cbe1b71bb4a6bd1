"""The kind Settled: create one, and wait for its status."""

from __future__ import annotations

from typing import Final

from pilothouse.bench.conditions import CONDITIONS
from pilothouse.bench.definitions import bench_resource, duration, record, texts
from pilothouse.kinds.definitions import flag_field, printer_column

SETTLED: Final = bench_resource(
    "Settled",
    "settleds",
    "Settled is true once the server has come to rest: no request is under way, no controller, scheduler or simulated"
    " node has work, and nothing has changed for a moment. It says so once; create another to wait again.",
    spec=record(
        "How to wait.",
        {
            "quietFor": duration("How long it must have been quiet; 100ms, if it is not given."),
            "timeout": duration("How long to wait for it; 30s, if it is not given."),
        },
    ),
    status=record(
        "What came of it; not there while it is waited for.",
        {
            "settled": flag_field("Whether the server came to rest in time."),
            "waitingFor": texts("Who still worked when the time was over."),
            "conditions": CONDITIONS,
        },
    ),
    columns=[
        printer_column("Settled", ".status.settled", "boolean"),
        printer_column("Waiting For", ".status.waitingFor"),
    ],
)
