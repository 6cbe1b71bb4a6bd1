"""CronJobs: defaults, and validation of schedules and job templates."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.apiserver.registry.metadata import generation_of
from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.kube.batch.job_validation import default_job_template, validate_job_template_spec
from pilothouse.kube.batch.jobs import job_warnings
from pilothouse.kube.strategy import StatusSubresource, gated
from pilothouse.kube.validation.fields import nonnegative, required_one_of
from pilothouse.kube.validation.selectors import shown_selector
from pilothouse.kube.workloads import WorkloadStrategy, container_columns, pod_name_warnings, selector_column
from pilothouse.machinery.cron import ScheduleError, parse_schedule, validate_time_zone
from pilothouse.machinery.durations import age
from pilothouse.machinery.field import Errors, Path, declared, invalid, not_supported, required, root
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json, items, name_of, number, part, text
from pilothouse.machinery.selectors.labels import format_label_selector

MAX_NAME_LENGTH = 52
"""63 characters minus the 11 characters that the controller appends."""

_JOB = root("spec", "jobTemplate", "spec")
_API = "io.k8s.api.batch.v1."
_TIME_ZONE_IN_SCHEDULE = (
    "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, "
    "see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
)


class CronJobStrategy(WorkloadStrategy):
    kind = GroupVersionKind("batch", "v1", "CronJob")
    gated_fields = (gated("WorkloadWithJob", "spec.jobTemplate.spec.scheduling"),)

    def default(self, obj: Json) -> None:
        spec = obj["spec"]
        spec["concurrencyPolicy"] = spec.get("concurrencyPolicy") or "Allow"
        spec.setdefault("suspend", False)
        spec.setdefault("successfulJobsHistoryLimit", 3)
        spec.setdefault("failedJobsHistoryLimit", 1)
        default_job_template(spec["jobTemplate"]["spec"])

    def template_of(self, obj: Json) -> Json | None:
        return part(_job_spec(obj), "template")

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        yield from _validate_cron_job_spec(obj["spec"], root("spec"))
        if len(name_of(obj)) > MAX_NAME_LENGTH:
            reason = f"must be no more than {MAX_NAME_LENGTH} characters"
            yield invalid(root("metadata", "name"), name_of(obj), reason)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        yield from _validate_cron_job_spec(obj["spec"], root("spec"), old["spec"])

    def warnings_on_create(self, obj: Json) -> Iterable[str]:
        yield from pod_name_warnings(obj)
        yield from job_warnings(_job_spec(obj), _JOB)

    def warnings_on_update(self, obj: Json, old: Json) -> Iterable[str]:
        if generation_of(obj) != generation_of(old):
            yield from job_warnings(_job_spec(obj), _JOB)
        if "TZ" in obj["spec"]["schedule"]:
            yield _TIME_ZONE_IN_SCHEDULE


class CronJobStatusStrategy(StatusSubresource, CronJobStrategy):
    def validate_update(self, obj: Json, old: Json) -> Errors:
        """Accept every status."""
        yield from ()


def _job_spec(obj: Json) -> Json:
    return part(obj, "spec", "jobTemplate", "spec")


def _suspend(obj: Json) -> str:
    suspend = part(obj, "spec").get("suspend")
    return "<unset>" if suspend is None else str(suspend)


def _last_schedule(obj: Json) -> str:
    time = part(obj, "status").get("lastScheduleTime")
    return age(time) if time else "<none>"


def _validate_cron_job_spec(spec: Json, path: Path, old: Json | None = None) -> Errors:
    schedule_path = path.child("schedule")
    schedule = spec["schedule"]
    if not schedule:
        yield declared(required(schedule_path))
    else:
        try:
            parse_schedule(schedule)
        except ScheduleError as error:
            yield invalid(schedule_path, schedule, str(error))
        # An existing TZ prefix is tolerated.
        if "TZ" in schedule:
            if old is None or "TZ" not in old["schedule"]:
                yield invalid(
                    schedule_path, schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
                )
            elif spec.get("timeZone") is not None:
                yield invalid(schedule_path, schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule")
    yield from nonnegative(number(spec, "startingDeadlineSeconds"), path.child("startingDeadlineSeconds"))
    if old is None or old.get("timeZone") != spec.get("timeZone"):
        yield from validate_time_zone(spec.get("timeZone"), path.child("timeZone"))
    policies = ("Allow", "Forbid", "Replace")
    yield from required_one_of(text(spec, "concurrencyPolicy"), path.child("concurrencyPolicy"), policies)
    before = part(old, "jobTemplate", "spec") if old else None
    yield from _validate_job_template(part(spec, "jobTemplate", "spec"), path.child("jobTemplate", "spec"), before)
    for name in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        yield from nonnegative(number(spec, name), path.child(name))


def _validate_job_template(spec: Json, path: Path, old: Json | None) -> Errors:
    yield from validate_job_template_spec(spec, path, old)
    if spec.get("selector") is not None:
        yield invalid(path.child("selector"), shown_selector(spec["selector"]), "`selector` will be auto-generated")
    if spec.get("manualSelector"):
        yield not_supported(path.child("manualSelector"), True, ("nil", "false"))


CRON_JOBS = Resource(
    names=Names("cronjobs", kind="CronJob", short=["cj"], categories=["all"]),
    strategy=CronJobStrategy(),
    status=CronJobStatusStrategy(),
    group="batch",
    columns=[
        NAME,
        Column("Schedule", lambda obj: obj["spec"]["schedule"], documented=(f"{_API}CronJobSpec", "schedule")),
        Column(
            "Timezone",
            lambda obj: part(obj, "spec").get("timeZone", "<none>"),
            documented=(f"{_API}CronJobSpec", "timeZone"),
        ),
        Column("Suspend", _suspend, type="boolean", documented=(f"{_API}CronJobSpec", "suspend")),
        Column(
            "Active",
            lambda obj: len(items(obj, "status", "active")),
            type="integer",
            documented=(f"{_API}CronJobStatus", "active"),
        ),
        Column("Last Schedule", _last_schedule, documented=(f"{_API}CronJobStatus", "lastScheduleTime")),
        AGE,
        *container_columns(lambda obj: part(_job_spec(obj), "template")),
        selector_column(f"{_API}JobSpec", lambda obj: format_label_selector(_job_spec(obj).get("selector"))),
    ],
)
