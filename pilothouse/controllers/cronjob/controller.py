"""cronjob-controller: creates jobs on schedule, and deletes finished jobs beyond the history limits."""

from __future__ import annotations

import asyncio
from copy import deepcopy

from pilothouse.client.cache.handlers import Deleted, ResourceEventHandlerFuncs
from pilothouse.client.cache.keys import deletion_handling_key, meta_namespace_key
from pilothouse.client.clock import utc_now
from pilothouse.client.controller import Controller, Requeue
from pilothouse.client.events.event import WARNING, EventSource
from pilothouse.client.events.recorder import EventRecorder
from pilothouse.controllers.context import ControllerContext, with_last_state
from pilothouse.controllers.cronjob.runs import CronJobRuns
from pilothouse.controllers.cronjob.timing import schedule_of, seconds_to_next
from pilothouse.controllers.resources import CRON_JOBS, JOBS
from pilothouse.controllers.workloads.owner_lookup import CONTROLLER_UID_INDEX, index_by_controller
from pilothouse.kinds.owners import controller_of
from pilothouse.machinery.cron import ScheduleError
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json, namespace_of, resource_version_of, uid_of, without_empty

_NAME = "cronjob"


async def run(context: ControllerContext) -> None:
    await _CronJobController(context).run()


class _CronJobController:
    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._crons, self._jobs = context.informer(CRON_JOBS), context.informer(JOBS)
        index_by_controller(self._jobs)
        self._queue = context.queue(_NAME, str)
        self._recorder = EventRecorder(context.client, EventSource("cronjob-controller"), clock=context.clock)
        self._runs = CronJobRuns(context.client, self._recorder)
        self._crons.add_event_handler(
            ResourceEventHandlerFuncs(add=self._enqueue, update=self._cron_updated, delete=self._enqueue)
        )
        self._jobs.add_event_handler(
            ResourceEventHandlerFuncs(
                add=self._job_changed, update=self._job_updated, delete=with_last_state(self._job_changed)
            )
        )

    async def run(self) -> None:
        workers, caches = self._context.config.concurrent_cron_job_syncs, (self._crons, self._jobs)
        crons = Controller(
            _NAME, self._sync, caches=caches, workers=workers, queue=self._queue, clock=self._context.clock
        )
        async with asyncio.TaskGroup() as tasks:
            for running in (crons.run(), self._recorder.run()):
                tasks.create_task(running)

    def _enqueue(self, cron: Deleted) -> None:
        self._queue.add(deletion_handling_key(cron))

    def _cron_updated(self, old: Json, new: Json) -> None:
        """Requeue a CronJob with a changed schedule for its next time."""
        if all(old["spec"].get(field) == new["spec"].get(field) for field in ("schedule", "timeZone")):
            self._enqueue(new)
            return
        try:
            seconds = seconds_to_next(new, schedule_of(new), utc_now(self._context.clock))
        except ScheduleError:
            message = f"unparseable schedule for cronjob: {new['spec']['schedule']}"
            self._recorder.event(new, WARNING, "UnParseableCronJobSchedule", message)
            return
        self._queue.add_after(meta_namespace_key(new), seconds)

    def _job_changed(self, job: Json) -> None:
        reference = controller_of(job)
        if reference is None or reference["kind"] != "CronJob":
            return
        cron = self._crons.indexer.get_by_key(f"{namespace_of(job)}/{reference['name']}")
        if cron is not None and uid_of(cron) == reference["uid"]:
            self._enqueue(cron)

    def _job_updated(self, old: Json, new: Json) -> None:
        if resource_version_of(old) == resource_version_of(new):
            return
        if controller_of(old) != controller_of(new):
            self._job_changed(old)
        self._job_changed(new)

    async def _sync(self, key: str) -> Requeue | None:
        cached = self._crons.indexer.get_by_key(key)
        if cached is None:
            return None
        jobs = self._jobs.indexer.by_index(CONTROLLER_UID_INDEX, uid_of(cached))
        cron = {**cached, "status": deepcopy(cached.get("status") or {})}
        before = deepcopy(cron["status"])
        try:
            wait = await self._runs.run(cron, jobs, utc_now(self._context.clock))
        finally:
            # Write partial progress even if a later step failed.
            if without_empty(cron["status"]) != without_empty(before):
                await self._write(cron)
        return None if wait is None else Requeue(wait)

    async def _write(self, cron: Json) -> None:
        crons = self._context.client.for_resource(CRON_JOBS, namespace=namespace_of(cron))
        try:
            await crons.update_status({**cron, "status": without_empty(cron["status"])})
        except NotFound:
            return
