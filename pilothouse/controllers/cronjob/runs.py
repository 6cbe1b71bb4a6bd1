"""One sync of a CronJob: update its jobs' status, and create the next job if due.

The name of a job contains its scheduled minute, so that a retry cannot create it twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from pilothouse.client.events.event import NORMAL, WARNING, reference_to
from pilothouse.client.events.recorder import EventRecorder
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.options import DeleteOptions
from pilothouse.client.rest.resource import ResourceClient
from pilothouse.controllers.cronjob.timing import Missed, NeverDue, due_time, schedule_of, seconds_to_next
from pilothouse.controllers.namespace_state import is_refusal_of_terminating_namespace
from pilothouse.controllers.resources import CRON_JOBS, JOBS
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kinds.owners import controller_ref, is_controlled_by
from pilothouse.machinery.cron import Schedule, ScheduleError, TimeZoneError, load_location
from pilothouse.machinery.errors import AlreadyExists, NotFound
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json, items, name_of, namespace_of, part, uid_of
from pilothouse.machinery.status_error import PilothouseError, StatusError
from pilothouse.machinery.times import format_time, parse_time, shifted

_LIMITS = {"Complete": "successfulJobsHistoryLimit", "Failed": "failedJobsHistoryLimit"}
_DOCS = "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/"
SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"


class CannotReplace(PilothouseError):
    """Concurrency policy Replace failed to delete the running job."""


class CronJobRuns:
    def __init__(self, client: Client, recorder: EventRecorder) -> None:
        self._client = client
        self._recorder = recorder

    async def run(self, cron: Json, jobs: Sequence[Json], now: datetime) -> float | None:
        """Sync the CronJob, updating its status in place; return the seconds until the next sync.

        Returns None if only a spec change can require another sync. Raises StatusError or CannotReplace.
        """
        # Delete the oldest finished jobs beyond the history limits.
        for outcome, field in _LIMITS.items():
            ended = [job for job in jobs if finished(job) == outcome]
            if (limit := cron["spec"].get(field)) is not None and len(ended) > limit:
                for job in oldest_first(ended)[: len(ended) - limit]:
                    await self._delete(cron, job)
        for job in jobs:
            known, outcome = is_active(cron, uid_of(job)), finished(job)
            if outcome and known:
                remove_active(cron, uid_of(job))
                message = f"Saw completed job: {name_of(job)}, condition: {outcome}"
                self._recorder.event(cron, NORMAL, "SawCompletedJob", message)
            if outcome == "Complete":
                note_success(cron, job)
            if not outcome and not known:
                await self._note_unexpected(cron, job)
        existing = {uid_of(job) for job in jobs}
        for reference in active_jobs(cron):
            if reference["uid"] in existing:
                continue
            try:
                await self._jobs_in(cron).get(reference["name"])
            except NotFound:
                message = f"Active job went missing: {reference['name']}"
                self._recorder.event(cron, NORMAL, "MissingJob", message)
                remove_active(cron, reference["uid"])
        if is_deleting(cron) or not self._has_valid_zone(cron) or cron["spec"].get("suspend"):
            return None
        schedule = self._schedule(cron)
        return None if schedule is None else await self._run_if_due(cron, schedule, now)

    def _jobs_in(self, cron: Json) -> ResourceClient:
        return self._client.for_resource(JOBS, namespace=namespace_of(cron))

    async def _delete(self, cron: Json, job: Json) -> bool:
        try:
            await self._jobs_in(cron).delete(name_of(job), DeleteOptions(propagation_policy="Background"))
        except StatusError as error:
            self._recorder.event(cron, WARNING, "FailedDelete", f"Deleted job: {error}")
            return False
        remove_active(cron, uid_of(job))
        self._recorder.event(cron, NORMAL, "SuccessfulDelete", f"Deleted job {name_of(job)}")
        return True

    async def _note_unexpected(self, cron: Json, job: Json) -> None:
        """Warn about an unknown job, unless the server's status lists it: the cache may be stale."""
        fresh = await self._client.for_resource(CRON_JOBS, namespace=namespace_of(cron)).get(name_of(cron))
        if is_active(fresh, uid_of(job)):
            cron.update(fresh)
            return
        message = f"Saw a job that the controller did not create or forgot: {name_of(job)}"
        self._recorder.event(cron, WARNING, "UnexpectedJob", message)

    def _has_valid_zone(self, cron: Json) -> bool:
        zone = cron["spec"].get("timeZone")
        try:
            load_location(zone or "")
        except TimeZoneError as error:
            self._recorder.event(cron, WARNING, "UnknownTimeZone", f"invalid timeZone: {quote(zone)}: {error}")
            return False
        return True

    def _schedule(self, cron: Json) -> Schedule | None:
        text = cron["spec"]["schedule"]
        if "TZ" in text:
            message = f"CRON_TZ or TZ used in schedule {quote(text)} is not officially supported, see {_DOCS} for more"
            self._recorder.event(cron, WARNING, "UnsupportedSchedule", f"{message} details")
        try:
            return schedule_of(cron)
        except ScheduleError as error:
            message = f"unparseable schedule: {quote(text)} : {error}"
            self._recorder.event(cron, WARNING, "UnparseableSchedule", message)
            return None

    async def _run_if_due(self, cron: Json, schedule: Schedule, now: datetime) -> float | None:
        try:
            due = due_time(cron, schedule, now)
        except NeverDue as error:
            message = f"invalid schedule: {cron['spec']['schedule']} : {error}"
            self._recorder.event(cron, WARNING, "InvalidSchedule", message)
            return None
        if due.time is not None and due.missed is Missed.MANY:
            message = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
            self._recorder.event(cron, WARNING, "TooManyMissedTimes", message)
        if due.time is not None and self._may_start(cron, due.time, now) and not await self._start(cron, due.time):
            return None
        return seconds_to_next(cron, schedule, now)

    def _may_start(self, cron: Json, due: datetime, now: datetime) -> bool:
        deadline = cron["spec"].get("startingDeadlineSeconds")
        if deadline is not None and shifted(due, deadline) < now:
            message = f"Missed scheduled time to start a job: {due.astimezone(UTC):%a, %d %b %Y %H:%M:%S +0000}"
            self._recorder.event(cron, WARNING, "MissSchedule", message)
            return False
        if has_run(cron, due):
            return False
        if cron["spec"].get("concurrencyPolicy") == "Forbid" and active_jobs(cron):
            message = "Not starting job because prior execution is running and concurrency policy is Forbid"
            self._recorder.event(cron, NORMAL, "JobAlreadyActive", message)
            return False
        return True

    async def _start(self, cron: Json, due: datetime) -> bool:
        """Create the job; return False if it already existed."""
        if cron["spec"].get("concurrencyPolicy") == "Replace":
            for reference in active_jobs(cron):
                try:
                    running = await self._jobs_in(cron).get(reference["name"])
                except StatusError as error:
                    self._recorder.event(cron, WARNING, "FailedGet", f"Get job: {error}")
                    raise
                if not await self._delete(cron, running):
                    raise CannotReplace(f"could not replace job {namespace_of(running)}/{name_of(running)}")
        job = await self._create(cron, new_job(cron, due))
        if job is None:
            return False
        add_active(cron, job)
        cron["status"]["lastScheduleTime"] = format_time(due)
        return True

    async def _create(self, cron: Json, wanted: Json) -> Json | None:
        """Return the job to record in the status; None if there is none."""
        jobs = self._jobs_in(cron)
        try:
            job = await jobs.create(wanted)
        except AlreadyExists:
            job = await jobs.get(name_of(wanted))
            return job if is_controlled_by(job, cron) and not is_active(cron, uid_of(job)) else None
        except StatusError as error:
            if not is_refusal_of_terminating_namespace(error):
                self._recorder.event(cron, WARNING, "FailedCreate", f"Error creating job: {error}")
            raise
        self._recorder.event(cron, NORMAL, "SuccessfulCreate", f"Created job {name_of(job)}")
        return job


def job_name(cron: Json, due: datetime) -> str:
    return f"{name_of(cron)}-{int(due.timestamp()) // 60}"


def new_job(cron: Json, due: datetime) -> Json:
    """Return the job for the scheduled time. Raises TimeZoneError."""
    template = cron["spec"]["jobTemplate"]
    of = template.get("metadata") or {}
    meta = {
        "name": job_name(cron, due),
        "namespace": namespace_of(cron),
        "labels": dict(of.get("labels") or {}),
        "annotations": {
            **(of.get("annotations") or {}),
            SCHEDULED: due.astimezone(load_location(cron["spec"].get("timeZone") or ""))
            .isoformat(timespec="seconds")
            .replace("+00:00", "Z"),
        },
        "ownerReferences": [controller_ref(cron)],
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": template["spec"]}


def is_active(cron: Json, uid: str) -> bool:
    return any(job["uid"] == uid for job in active_jobs(cron))


def active_jobs(cron: Json) -> list[Json]:
    active: list[Json] = items(cron, "status", "active")
    return active


def add_active(cron: Json, job: Json) -> None:
    cron["status"]["active"] = [*active_jobs(cron), reference_to(job)]


def remove_active(cron: Json, uid: str) -> None:
    cron["status"]["active"] = [job for job in active_jobs(cron) if job["uid"] != uid]


def finished(job: Json) -> str:
    """Return "Complete" or "Failed"; empty if the job is running."""
    conditions = items(job, "status", "conditions")
    ends = (
        condition["type"]
        for condition in conditions
        if condition["type"] in ("Complete", "Failed") and condition["status"] == "True"
    )
    return next(ends, "")


def oldest_first(jobs: Iterable[Json]) -> list[Json]:
    """Sort by start time; unstarted jobs come last."""
    return sorted(jobs, key=lambda job: (_started(job) or datetime.max.replace(tzinfo=UTC), name_of(job)))


def note_success(cron: Json, job: Json) -> bool:
    """Update lastSuccessfulTime; return whether it changed."""
    ended, last = job["status"].get("completionTime"), cron["status"].get("lastSuccessfulTime")
    if ended is None or (last is not None and _moment(ended) <= _moment(last)):
        return False
    cron["status"]["lastSuccessfulTime"] = ended
    return True


def has_run(cron: Json, due: datetime) -> bool:
    """Return whether the job of this scheduled time exists or existed."""
    name, last = job_name(cron, due), cron["status"].get("lastScheduleTime")
    return any(job["name"] == name for job in active_jobs(cron)) or (last is not None and _moment(last) == due)


def _started(job: Json) -> datetime | None:
    started = part(job, "status").get("startTime")
    return parse_time(started) if started else None


def _moment(text: str) -> datetime:
    return parse_time(text) or datetime.min.replace(tzinfo=UTC)
