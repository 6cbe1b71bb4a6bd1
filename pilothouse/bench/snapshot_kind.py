"""The kind Snapshot: create one to save the objects, set spec.restore to restore them."""

from __future__ import annotations

from typing import Final

from pilothouse.apiserver.storage.snapshots import Snapshots, StoredSnapshot
from pilothouse.bench.definitions import bench_resource, number, record
from pilothouse.bench.served_kind import ServedKind
from pilothouse.kinds.definitions import flag_field, printer_column, text_field
from pilothouse.machinery.objects import Json

SNAPSHOT: Final = bench_resource(
    "Snapshot",
    "snapshots",
    "Snapshot has all objects at the time of its creation, except those of the test bench. It is held in the memory"
    " of the server, and is lost when the server stops.",
    spec=record(
        "Requested action.",
        {
            "restore": flag_field(
                "Restore the objects once. The server removes the field afterwards, then the write returns."
                " Watches end as after a compaction, and resource versions keep increasing."
            )
        },
    ),
    status=record(
        "The saved state.",
        {
            "saved": flag_field("Whether the server holds the snapshot."),
            "objects": number("Number of objects."),
            "bytes": number("Stored size of the objects."),
            "revision": number("Revision of the snapshot."),
            "restores": number("Number of restores."),
            "message": text_field("Reason why the snapshot is not available."),
        },
    ),
    columns=[
        printer_column("Saved", ".status.saved", "boolean"),
        printer_column("Objects", ".status.objects", "integer"),
        printer_column("Bytes", ".status.bytes", "integer"),
        printer_column("Restores", ".status.restores", "integer"),
    ],
)


_LOST = "the snapshot was lost when its server stopped"


class SnapshotObjects:
    """Owner of Snapshots."""

    kind: ServedKind

    def __init__(self, snapshots: Snapshots) -> None:
        self._snapshots = snapshots
        self._saved: dict[str, StoredSnapshot] = {}
        self._restores: dict[str, int] = {}

    async def hear(self, name: str, obj: Json | None) -> None:
        if obj is None:
            self._saved.pop(name, None)
            self._restores.pop(name, None)
            return
        if name not in self._saved and not obj.get("status"):
            self._saved[name] = await self._snapshots.save()
        elif name in self._saved and (obj.get("spec") or {}).get("restore"):
            await self._snapshots.restore(self._saved[name])
            self._restores[name] = self._restores.get(name, 0) + 1
        self.kind.changed(name)

    def revised(self, name: str, obj: Json) -> Json | None:
        """Remove completed requests from the spec, so that the same request can be made again."""
        spec = {key: value for key, value in (obj.get("spec") or {}).items() if key != "restore"}
        return obj | {"spec": spec, "status": self._status(name)}

    async def about_to_be_read(self) -> None:
        """Do nothing: changes are reported immediately."""

    def _status(self, name: str) -> Json:
        if (saved := self._saved.get(name)) is None:
            return {"saved": False, "message": _LOST}
        sizes = {"objects": len(saved.entries), "bytes": saved.size, "revision": saved.revision}
        return {"saved": True, **sizes, "restores": self._restores.get(name, 0)}
