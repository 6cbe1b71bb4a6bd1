"""Saves and restores what the Snapshots say."""

from __future__ import annotations

from pilothouse.apiserver.storage.snapshots import Snapshots, StoredSnapshot
from pilothouse.bench.served_kind import ServedKind
from pilothouse.machinery.objects import Json, part

_LOST = "it was lost with the server that had it"


class SnapshotObjects:
    """Is an Owner."""

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
        elif name in self._saved and part(obj, "spec").get("restore"):
            await self._snapshots.restore(self._saved[name])
            self._restores[name] = self._restores.get(name, 0) + 1
        self.kind.changed(name)

    def revised(self, name: str, obj: Json) -> Json | None:
        """What was done is taken out, so that the same can be asked for once more."""
        spec = {key: value for key, value in (obj.get("spec") or {}).items() if key != "restore"}
        return obj | {"spec": spec, "status": self._status(name)}

    async def about_to_be_read(self) -> None:
        """Whatever has changed was said at once."""

    def _status(self, name: str) -> Json:
        if (saved := self._saved.get(name)) is None:
            return {"saved": False, "message": _LOST}
        sizes = {"objects": len(saved.entries), "bytes": saved.size, "revision": saved.revision}
        return {"saved": True, **sizes, "restores": self._restores.get(name, 0)}
