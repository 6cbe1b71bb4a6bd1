"""The template of a server: what it has when it has nothing left to do, and the way back to it."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pilothouse.machinery.status_error import StatusError

if TYPE_CHECKING:
    from pilothouse.apiserver.storage.snapshots import StoredSnapshot
    from pilothouse.testing.api import BlockingAPI

_PAUSE, _PATIENCE = 0.01, 10.0
_FIRST_WORK = "/registry/serviceaccounts/default/default"
"""Written by a controller, as soon as they run."""
_BENCH = "/apis/testing.pilothouse.dev/v1alpha1"
_CLOCK = f"{_BENCH}/clocks/server"


def take_template(api: BlockingAPI, controllers: Iterable[str]) -> StoredSnapshot:
    """Return a snapshot that controllers have nothing to add to: they run, and have come to rest.

    A server that never rests is taken as it is after a while.
    """
    end = time.monotonic() + _PATIENCE
    while "*" in controllers and _FIRST_WORK not in api.snapshot().entries and time.monotonic() < end:
        time.sleep(_PAUSE)
    with suppress(TimeoutError, StatusError):
        api.settle(_PATIENCE)
    return api.snapshot()


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
