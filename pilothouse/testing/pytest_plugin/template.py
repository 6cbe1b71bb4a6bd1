"""The template of a server: what it has when it has nothing left to do, and the way back to it."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pilothouse.apiserver.storage.snapshots import StoredSnapshot
    from pilothouse.testing.api import BlockingAPI

_QUIET, _PAUSE, _PATIENCE = 0.25, 0.05, 10.0
_LEASES = "leases/"
_BENCH = "/apis/testing.pilothouse.dev/v1alpha1"
_CLOCK = f"{_BENCH}/clocks/server"


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


def put_back(api: BlockingAPI, template: StoredSnapshot) -> None:
    """Make the server what it was: nothing that a test told the test bench counts any longer, all objects are those of
    the template."""
    end_faults(api)
    clock = api.request("GET", _CLOCK)
    if clock.status == 200 and (clock.json.get("spec") or clock.json["status"]["ahead"] != "0s"):
        machines = {"spec": {"stopped": None, "speed": None, "time": datetime.now(UTC).isoformat()}}
        api.request("PATCH", _CLOCK, machines, media="application/merge-patch+json")
    api.restore(template)


def end_faults(api: BlockingAPI) -> None:
    """Have the server do again what it is asked for."""
    faults = api.request("GET", f"{_BENCH}/faults")
    if faults.status == 200 and faults.json["items"]:
        api.request("DELETE", f"{_BENCH}/faults")


def _written(snapshot: StoredSnapshot) -> dict[str, int]:
    return {key: entry.modified for key, entry in snapshot.entries.items() if _LEASES not in key}
