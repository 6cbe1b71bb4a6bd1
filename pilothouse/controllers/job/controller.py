"""job-controller: runs pods of jobs to completion, and counts each terminated pod exactly once."""

from __future__ import annotations

import asyncio
from copy import deepcopy

from pilothouse.client.cache.keys import meta_namespace_key
from pilothouse.client.cache.shared_informer import SharedIndexInformer
from pilothouse.client.clock import utc_now
from pilothouse.client.controller import Controller
from pilothouse.client.events.event import NORMAL, WARNING, EventSource
from pilothouse.client.events.recorder import EventRecorder
from pilothouse.client.rest.client import Client
from pilothouse.controllers.context import ControllerContext
from pilothouse.controllers.job.accounting import StatusTracker
from pilothouse.controllers.job.handlers import JobHandlers, OrphanPods
from pilothouse.controllers.job.manage import PodManager
from pilothouse.controllers.job.pod_changes import PodChanges, ReleasedPods
from pilothouse.controllers.job.pods import (
    SUSPENDED,
    TRACKING_FINALIZER,
    ensure_condition,
    is_finished,
    is_managed_elsewhere,
    is_of_a_known_mode,
    is_suspended,
    is_tracked,
    new_condition,
)
from pilothouse.controllers.job.sync_state import Backoff, SyncState, look_at
from pilothouse.controllers.job.verdict import completed, seconds_to_deadline, verdict
from pilothouse.controllers.resources import JOBS, PODS
from pilothouse.controllers.workloads.expectations import ControllerExpectations
from pilothouse.controllers.workloads.owner_lookup import OwnerLookup, controlled_or_orphaned, index_by_controller
from pilothouse.controllers.workloads.pod_control import PodControl
from pilothouse.controllers.workloads.ref_manager import ControllerRefManager
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kinds.owners import is_controlled_by
from pilothouse.machinery.objects import Json, metadata, name_of, namespace_of, resource_version_of, uid_of
from pilothouse.machinery.selectors.labels import from_label_selector
from pilothouse.machinery.times import format_time


async def run(context: ControllerContext) -> None:
    await _JobController(context).run()


class _JobController:
    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._config = context.config.jobs
        self._jobs, self._pods = context.informer(JOBS), context.informer(PODS)
        self._queue = context.queue("job", str, first_delay=1.0, max_delay=60.0)
        self._recorder = EventRecorder(context.client, EventSource("job-controller"), clock=context.clock)
        self._expectations, self._released = ControllerExpectations(context.clock), ReleasedPods()
        control = PodControl(context.client, self._recorder)
        changes = PodChanges(control, self._expectations, self._released, OwnerLookup(self._jobs, "Job").is_current)
        self._manager = PodManager(changes, self._config, self._queue.add_after)
        self._tracker = StatusTracker(context.client, changes, self._recorder, self._wrote)
        self._own_pods = OwnPods(context.client, self._pods)
        self._backoffs: dict[str, Backoff] = {}
        self._written: dict[str, int] = {}
        """resourceVersion of the last status write, by job uid."""
        handlers = JobHandlers(self._jobs, self._queue, self._expectations, self._released, self._forget, context)
        self._orphans = OrphanPods(context, control, handlers.job_of, self._config.concurrent_syncs)
        handlers.attach(self._pods, self._orphans)

    async def run(self) -> None:
        workers, caches = self._config.concurrent_syncs, (self._jobs, self._pods)
        jobs = Controller(
            "job", self._sync, caches=caches, workers=workers, queue=self._queue, clock=self._context.clock
        )
        async with asyncio.TaskGroup() as tasks:
            for running in (jobs.run(), self._orphans.run(), self._recorder.run()):
                tasks.create_task(running)

    def _wrote(self, job: Json) -> None:
        self._written[uid_of(job)] = int(resource_version_of(job))

    def _forget(self, job: Json) -> None:
        self._backoffs.pop(meta_namespace_key(job), None)
        self._written.pop(uid_of(job), None)

    async def _sync(self, key: str) -> None:
        cached = self._jobs.indexer.get_by_key(key)
        if cached is None:
            self._expectations.forget(key)
            self._released.forget(key)
            self._backoffs.pop(key, None)
            return
        if is_managed_elsewhere(cached):
            return
        if int(resource_version_of(cached)) < self._written.get(uid_of(cached), 0):
            return  # stale cache; the pending event requeues the job
        if is_finished(cached):
            self._forget(cached)
            return
        if not is_of_a_known_mode(cached):
            message = "Skipped Job sync because completion mode is unknown"
            self._recorder.event(cached, WARNING, "UnknownCompletionMode", message)
            return
        await self._sync_job(key, {**cached, "status": deepcopy(cached.get("status") or {})})

    async def _sync_job(self, key: str, job: Json) -> None:
        """Sync pods and status of the job. Raises StatusError or SlowStartError."""
        are_met = self._expectations.are_met(key)  # evaluated before pods are listed, because listing may satisfy them
        pods = await self._own_pods.of(job)
        released, backoff = self._released.of(key), self._backoffs.get(key, Backoff())
        state = look_at(job, pods, released=released, backoff=backoff, now=utc_now(self._context.clock))
        if not job["status"].get("startTime") and not is_suspended(job):
            job["status"]["startTime"] = format_time(state.now)
        state.finished = verdict(state)
        if state.finished is not None:
            suspended, error = False, await self._end(state, are_met)
        else:
            if (left := seconds_to_deadline(state.job, state.now)) is not None:
                self._queue.add_after(key, left)
            suspended, error = await self._go_on(state, key, are_met)
        status = state.status
        before = (status.get("active") or 0, status.get("ready"), status.get("terminating"))
        status |= {"active": state.active, "ready": state.ready, "terminating": state.terminating}
        changed = (before != (state.active, state.ready, state.terminating)) or suspended
        await self._tracker.track(state, key, changed=changed, counted=lambda: self._keep_backoff(key, state))
        if error is not None:
            raise error

    def _keep_backoff(self, key: str, state: SyncState) -> None:
        self._backoffs[key] = state.backoff

    async def _end(self, state: SyncState, are_met: bool) -> Exception | None:
        """Delete all pods of an ending job; it is finished only when no active pod remains."""
        error = await self._manager.end(state)
        if state.active or not are_met:
            state.finished = None
        return error

    async def _go_on(self, state: SyncState, key: str, are_met: bool) -> tuple[bool, Exception | None]:
        """Manage pods of a running job; return (whether it was suspended or resumed, error)."""
        may_manage = are_met and not is_deleting(state.job)
        error = await self._manager.manage(state, key) if may_manage else None
        state.finished = completed(state)
        changed = may_manage and state.finished is None and self._suspend_or_resume(state)
        return changed, error

    def _suspend_or_resume(self, state: SyncState) -> bool:
        suspended, status = is_suspended(state.job), state.status
        value, reason, message = (
            ("True", "JobSuspended", "Job suspended") if suspended else ("False", "JobResumed", "Job resumed")
        )
        condition = new_condition(SUSPENDED, reason, message, state.now, status=value)
        if not ensure_condition(status, condition):
            return False
        self._recorder.event(state.job, NORMAL, "Suspended" if suspended else "Resumed", message)
        if not suspended:  # resuming restarts activeDeadlineSeconds
            status["startTime"] = format_time(state.now)
        elif self._config.mutable_scheduling_directives:
            status.pop("startTime", None)
        return True


class OwnPods:
    def __init__(self, client: Client, pods: SharedIndexInformer) -> None:
        self._client = client
        self._pods = pods
        index_by_controller(pods)

    async def of(self, job: Json) -> list[Json]:
        """Return the job's pods after adoption and release. Raises StatusError or CannotAdopt."""
        jobs = self._client.for_resource(JOBS, namespace=namespace_of(job))
        manager = ControllerRefManager(
            self._client,
            PODS,
            job,
            from_label_selector(job["spec"].get("selector")),
            read_owner=lambda: jobs.get(name_of(job)),
            finalizers=(TRACKING_FINALIZER,),
        )
        claimed = await manager.claim(controlled_or_orphaned(self._pods, job))
        return [pod if is_controlled_by(pod, job) else _tracked(pod) for pod in claimed]


def _tracked(pod: Json) -> Json:
    """Return a newly adopted pod with the tracking finalizer, as the cache will show it."""
    if is_tracked(pod):
        return pod
    meta = metadata(pod)
    return {**pod, "metadata": {**meta, "finalizers": [*(meta.get("finalizers") or ()), TRACKING_FINALIZER]}}
