"""Status writes of a job, ordered so that no pod is lost or counted twice (see accounting)."""

from __future__ import annotations

from collections.abc import Callable

from pilothouse.client.events.event import NORMAL, WARNING
from pilothouse.client.events.recorder import EventRecorder
from pilothouse.client.rest.client import Client
from pilothouse.controllers.job.accounting import (
    Accounts,
    announce_end,
    count_released,
    enact_end,
    write_down,
)
from pilothouse.controllers.job.conditions import COMPLETE
from pilothouse.controllers.job.pod_changes import PodChanges
from pilothouse.controllers.job.sync_state import SyncState
from pilothouse.controllers.resources import JOBS
from pilothouse.machinery.objects import Json, namespace_of, uid_of

_NUMBERS = ("active", "succeeded", "failed")


class StatusTracker:
    def __init__(
        self, client: Client, changes: PodChanges, recorder: EventRecorder, written: Callable[[Json], None]
    ) -> None:
        """`written` is called with each job as stored by the server."""
        self._jobs = client.for_resource(JOBS)
        self._changes = changes
        self._recorder = recorder
        self._written = written

    async def track(self, state: SyncState, key: str, *, changed: bool, counted: Callable[[], None]) -> None:
        """Count terminated pods, remove their finalizers, and finish the job if due.

        `counted` is called after the status with the terminated pods is written. Raises StatusError.
        """
        pending = {uid_of(pod) for pod in state.pods if state.is_pending(pod)}
        changed |= count_released(state.status, pending)
        accounts = write_down(state)
        changed |= accounts.changed
        changed |= announce_end(state)
        if changed:
            await self._write(state)
            counted()
        changed = await self._release(state, key, accounts, pending)
        ended = not accounts.full and enact_end(state)
        if changed or ended:
            await self._write(state)
        if ended and state.finished is not None:
            self._tell_end(state.job, state.finished)

    async def _release(self, state: SyncState, key: str, accounts: Accounts, pending: set[str]) -> bool:
        """Remove finalizers; return whether the status changed. On error, writes partial progress, then raises."""
        released = await self._changes.release(key, accounts.to_release)
        changed = count_released(state.status, pending - released.uids)
        if released.error is not None:
            if changed:
                await self._write(state)
            raise released.error
        return changed

    async def _write(self, state: SyncState) -> None:
        status = {name: value for name, value in state.status.items() if value or name not in _NUMBERS}
        job = await self._jobs.namespace(namespace_of(state.job)).update_status({**state.job, "status": status})
        self._written(job)
        status = job["status"]
        status["uncountedTerminatedPods"] = status.get("uncountedTerminatedPods") or {}
        state.job = job

    def _tell_end(self, job: Json, condition: Json) -> None:
        if condition["type"] != COMPLETE:
            self._recorder.event(job, WARNING, condition["reason"], condition["message"])
            return
        completions = job["spec"].get("completions")
        if completions is not None and (job["status"].get("succeeded") or 0) > completions:
            told = "Too many succeeded pods running after completion count reached"
            self._recorder.event(job, WARNING, "TooManySucceededPods", told)
        self._recorder.event(job, NORMAL, "Completed", "Job completed")
