"""Jobs of a CronJob: construction, and their part in the CronJob's status.

The name of a job contains its scheduled minute, so that a retry cannot create it twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from pilothouse.client.events.event import reference_to
from pilothouse.kinds.owners import controller_ref
from pilothouse.machinery.cron.schedule import load_location
from pilothouse.machinery.objects import Json, items, name_of, namespace_of, part
from pilothouse.machinery.times import parse_time

SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"


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
    return any(each["uid"] == uid for each in active_jobs(cron))


def active_jobs(cron: Json) -> list[Json]:
    active: list[Json] = items(cron, "status", "active")
    return active


def add_active(cron: Json, job: Json) -> None:
    cron["status"]["active"] = [*active_jobs(cron), reference_to(job)]


def remove_active(cron: Json, uid: str) -> None:
    cron["status"]["active"] = [each for each in active_jobs(cron) if each["uid"] != uid]


def finished(job: Json) -> str:
    """Return "Complete" or "Failed"; empty if the job is running."""
    conditions = items(job, "status", "conditions")
    ends = (each["type"] for each in conditions if each["type"] in ("Complete", "Failed") and each["status"] == "True")
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
    return any(each["name"] == name for each in active_jobs(cron)) or (last is not None and _moment(last) == due)


def _started(job: Json) -> datetime | None:
    started = part(job, "status").get("startTime")
    return parse_time(started) if started else None


def _moment(text: str) -> datetime:
    return parse_time(text) or datetime.min.replace(tzinfo=UTC)
