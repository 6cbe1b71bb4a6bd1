"""What the spec of a cron job must be."""

from __future__ import annotations

from pilothouse.kube.batch.cron import ScheduleError, check_schedule
from pilothouse.kube.batch.job_validation import validate_job_template_spec
from pilothouse.kube.batch.time_zones import validate_time_zone
from pilothouse.kube.validation.fields import nonnegative, required_one_of
from pilothouse.kube.validation.label_selectors import shown_selector
from pilothouse.machinery.field import Errors, Path, invalid, not_supported, required
from pilothouse.machinery.nested_fields import number, part, text
from pilothouse.machinery.objects import Json


def validate_cron_job_spec(spec: Json, path: Path, old: Json | None = None) -> Errors:
    yield from _validate_schedule(spec, path.child("schedule"), old)
    yield from nonnegative(number(spec, "startingDeadlineSeconds"), path.child("startingDeadlineSeconds"))
    if old is None or old.get("timeZone") != spec.get("timeZone"):
        yield from validate_time_zone(spec.get("timeZone"), path.child("timeZone"))
    policies = ("Allow", "Forbid", "Replace")
    yield from required_one_of(text(spec, "concurrencyPolicy"), path.child("concurrencyPolicy"), policies)
    before = part(old, "jobTemplate", "spec") if old else None
    yield from _validate_job_template(part(spec, "jobTemplate", "spec"), path.child("jobTemplate", "spec"), before)
    for name in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        yield from nonnegative(number(spec, name), path.child(name))


def _validate_schedule(spec: Json, path: Path, old: Json | None) -> Errors:
    """Time zones in schedules are tolerated only where they already are."""
    schedule = spec["schedule"]
    if not schedule:
        yield required(path)
        return
    try:
        check_schedule(schedule)
    except ScheduleError as error:
        yield invalid(path, schedule, str(error))
    if "TZ" not in schedule:
        return
    if old is None or "TZ" not in old["schedule"]:
        yield invalid(path, schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
    elif spec.get("timeZone") is not None:
        yield invalid(path, schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule")


def _validate_job_template(spec: Json, path: Path, old: Json | None) -> Errors:
    yield from validate_job_template_spec(spec, path, old)
    if spec.get("selector") is not None:
        yield invalid(path.child("selector"), shown_selector(spec["selector"]), "`selector` will be auto-generated")
    if spec.get("manualSelector"):
        yield not_supported(path.child("manualSelector"), True, ("nil", "false"))
