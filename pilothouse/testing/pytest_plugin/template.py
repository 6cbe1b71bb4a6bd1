"""The template of a server: what it has when it has nothing left to do."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pilothouse.apiserver.storage.snapshots import StoredSnapshot
    from pilothouse.testing.api import BlockingAPI

_QUIET, _PAUSE, _PATIENCE = 0.1, 0.02, 10.0
_LEASES = "leases/"


def take_template(api: BlockingAPI) -> StoredSnapshot:
    """Return a snapshot that controllers have nothing to add to: nothing but leases was written for a moment.

    A server that never rests is taken as it is after a while.
    """
    end = time.monotonic() + _PATIENCE
    snapshot, since = api.snapshot(), time.monotonic()
    while time.monotonic() < min(end, since + _QUIET):
        time.sleep(_PAUSE)
        newer = api.snapshot()
        if _written(newer) != _written(snapshot):
            snapshot, since = newer, time.monotonic()
    return snapshot


def _written(snapshot: StoredSnapshot) -> dict[str, int]:
    return {key: entry.modified for key, entry in snapshot.entries.items() if _LEASES not in key}
