"""The template of a server: its objects after installation, and the reset to them."""

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

_POLL_INTERVAL, _TIMEOUT = 0.01, 10.0
_FIRST_WORK = "/registry/serviceaccounts/default/default"
"""Object that the first running controller creates."""
_BENCH = "/apis/testing.pilothouse.dev/v1alpha1"
_CLOCK = f"{_BENCH}/clocks/server"


def take_template(api: BlockingAPI, controllers: Iterable[str]) -> StoredSnapshot:
    """Return a snapshot of the quiescent server. After a timeout, the snapshot is taken anyway."""
    end = time.monotonic() + _TIMEOUT
    while "*" in controllers and _FIRST_WORK not in api.snapshot().entries and time.monotonic() < end:
        time.sleep(_POLL_INTERVAL)
    with suppress(TimeoutError, StatusError):
        api.settle(_TIMEOUT)
    return api.snapshot()


def reset(api: BlockingAPI, template: StoredSnapshot) -> None:
    """Reset the server: remove faults, reset the clock, and restore the objects of the template."""
    end_faults(api)
    clock = api.request("GET", _CLOCK)
    if clock.status == 200 and (clock.json.get("spec") or clock.json["status"]["ahead"] != "0s"):
        machines = {"spec": {"stopped": None, "speed": None, "time": datetime.now(UTC).isoformat()}}
        api.request("PATCH", _CLOCK, machines, media="application/merge-patch+json")
    api.restore(template)


def end_faults(api: BlockingAPI) -> None:
    """Delete all faults."""
    faults = api.request("GET", f"{_BENCH}/faults")
    if faults.status == 200 and faults.json["items"]:
        api.request("DELETE", f"{_BENCH}/faults")
