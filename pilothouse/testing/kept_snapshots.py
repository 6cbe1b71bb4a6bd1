"""Snapshots of a server in another process, which keeps them there: Snapshots of its test bench."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilothouse.apiserver.storage.snapshots import StoredSnapshot
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import NotFound
from pilothouse.testing.bench import asked, written
from pilothouse.testing.bench_objects import bench_object, path_of

if TYPE_CHECKING:
    from pilothouse.testing.api import API

_SNAPSHOTS = "snapshots"
_GO_BACK = {"spec": {"restore": True}}


@dataclass(frozen=True, slots=True)
class KeptSnapshot(StoredSnapshot):
    """The entries are there and not here."""

    name: str = ""


async def save_there(api: API) -> KeptSnapshot:
    """Raises ValueError where the server has no test bench, StatusError."""
    try:
        kept = await written(api, _SNAPSHOTS, bench_object("Snapshot", "", {}))
    except NotFound:
        raise ValueError("a server in another process takes snapshots with testing=True only") from None
    return KeptSnapshot((await kept.status())["revision"], {}, None, kept.name)


async def restore_there(api: API, snapshot: KeptSnapshot) -> None:
    """Raises StatusError."""
    target = path_of(_SNAPSHOTS, snapshot.name)
    await asked(api, "PATCH", target, _GO_BACK, media="application/merge-patch+json")
