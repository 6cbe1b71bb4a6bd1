"""What the suites share. Whatever an operator is written with, it keeps a CronJob for every Backup."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any, TypeVar

T = TypeVar("T")

BACKUP = {
    "apiVersion": "example.com/v1",
    "kind": "Backup",
    "metadata": {"name": "photos", "namespace": "default"},
    "spec": {"schedule": "@hourly"},
}


def cron_job_of(backup: Any) -> dict[str, Any]:
    """Return the CronJob that a Backup is to have."""
    pod = {"restartPolicy": "Never", "containers": [{"name": "backup", "image": "backup"}]}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": backup["metadata"]["name"], "namespace": backup["metadata"]["namespace"]},
        "spec": {"schedule": backup["spec"]["schedule"], "jobTemplate": {"spec": {"template": {"spec": pod}}}},
    }


def soon(look: Callable[[], T]) -> T:
    """Wait until there is something that is true, and return it."""
    end = time.monotonic() + 10
    while not (found := look()) and time.monotonic() < end:
        time.sleep(0.01)
    assert found
    return found


@contextmanager
def in_thread(work: Callable[[Callable[[], bool]], object]) -> Iterator[None]:
    """Run an operator, which is given what says whether it is to stop, for as long as the block lasts."""
    stop = Event()
    Thread(target=work, args=(stop.is_set,), daemon=True).start()
    yield
    stop.set()
