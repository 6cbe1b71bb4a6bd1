"""The kind Snapshot: creating one saves, setting spec.restore goes back to it."""

from __future__ import annotations

from typing import Final

from pilothouse.bench.definitions import bench_resource, number, record
from pilothouse.kinds.definitions import flag_field, printer_column, text_field

SNAPSHOT: Final = bench_resource(
    "Snapshot",
    "snapshots",
    "Snapshot is all objects as they were when it was created, but for those of the test bench. It lives in the memory"
    " of the server, and is lost with it.",
    spec=record(
        "What is to be done with it.",
        {
            "restore": flag_field(
                "Whether to go back to it, once: it is taken out when that is done, and then the write is answered."
                " Watches end as after a compaction, and resource versions go on rising."
            )
        },
    ),
    status=record(
        "What was saved.",
        {
            "saved": flag_field("Whether the server has it."),
            "objects": number("How many objects it has."),
            "bytes": number("How large they are as they are stored."),
            "revision": number("The revision at which they were so."),
            "restores": number("How often it was gone back to."),
            "message": text_field("Why it is not there."),
        },
    ),
    columns=[
        printer_column("Saved", ".status.saved", "boolean"),
        printer_column("Objects", ".status.objects", "integer"),
        printer_column("Bytes", ".status.bytes", "integer"),
        printer_column("Restores", ".status.restores", "integer"),
    ],
)
