"""What cron jobs may say."""

from __future__ import annotations

from typing import Any

import pytest
from rules import decoded, refusals, update_refusals

from pilothouse.kube.batch.cronjobs import CRON_JOBS, CronJobStatusStrategy
from pilothouse.machinery.objects import Json


def cron_job(schedule: str = "@daily", job: Json | None = None, meta: Json | None = None, **spec: Any) -> Json:
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    template = {"spec": {"template": {"spec": pod}, **(job or {})}}
    return {"metadata": meta or {}, "spec": {"schedule": schedule, "jobTemplate": template, **spec}}


def test_a_cron_job_keeps_three_successes_and_one_failure() -> None:
    spec = decoded(CRON_JOBS, cron_job())["spec"]
    assert (spec["successfulJobsHistoryLimit"], spec["failedJobsHistoryLimit"]) == (3, 1)
    assert (spec["concurrencyPolicy"], spec["suspend"]) == ("Allow", False)


def test_the_job_in_it_gets_its_defaults_when_it_is_made() -> None:
    job = decoded(CRON_JOBS, cron_job())["spec"]["jobTemplate"]["spec"]
    assert set(job) == {"template"}
    assert job["template"]["spec"]["dnsPolicy"] == "ClusterFirst"


@pytest.mark.parametrize(
    ("obj", "errors"),
    [
        (cron_job(""), ["schedule: Required value"]),
        (cron_job("* * *"), ['schedule: Invalid value: "* * *": expected exactly 5 fields, found 3: [* * *]']),
        (
            cron_job("TZ=UTC @daily"),
            [
                'schedule: Invalid value: "TZ=UTC @daily": '
                "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
            ],
        ),
        (cron_job(timeZone="Mars"), ['timeZone: Invalid value: "Mars": unknown time zone Mars']),
        (
            cron_job(concurrencyPolicy="Odd"),
            ['concurrencyPolicy: Unsupported value: "Odd": supported values: "Allow", "Forbid", "Replace"'],
        ),
        (
            cron_job(job={"manualSelector": True, "selector": {"matchLabels": {"b": "1", "a": "2"}}}),
            [
                'jobTemplate.spec.selector: Invalid value: {"matchLabels":{"a":"2","b":"1"}}: '
                "`selector` will be auto-generated",
                'jobTemplate.spec.manualSelector: Unsupported value: true: supported values: "nil", "false"',
            ],
        ),
        (
            cron_job(job={"backoffLimit": -1}, startingDeadlineSeconds=-1),
            [
                "startingDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0",
                "jobTemplate.spec.backoffLimit: Invalid value: -1: must be greater than or equal to 0",
            ],
        ),
    ],
)
def test_a_cron_job_that_makes_no_sense_is_refused(obj: Json, errors: list[str]) -> None:
    assert refusals(CRON_JOBS, obj) == [f"spec.{error}" for error in errors]


def test_names_leave_room_for_the_time_when_they_are_new() -> None:
    long = {"name": "a" * 53}
    assert refusals(CRON_JOBS, cron_job(meta=long)) == [
        f'metadata.name: Invalid value: "{"a" * 53}": must be no more than 52 characters'
    ]
    assert update_refusals(CRON_JOBS, cron_job(meta=long), cron_job(meta=long)) == []


def test_a_time_zone_in_a_schedule_is_tolerated_where_it_already_is() -> None:
    old = cron_job("TZ=UTC @daily")
    assert update_refusals(CRON_JOBS, cron_job("TZ=UTC @hourly"), old) == []
    assert update_refusals(CRON_JOBS, cron_job("TZ=UTC @hourly", timeZone="UTC"), old) == [
        'spec.schedule: Invalid value: "TZ=UTC @hourly": cannot use both timeZone field and TZ or CRON_TZ in schedule'
    ]
    made = decoded(CRON_JOBS, old)
    [warning] = CRON_JOBS.strategy.warnings_on_update(made, made)
    assert warning.startswith("cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead")


def test_a_time_zone_that_was_wrong_may_stay_wrong() -> None:
    old = cron_job(timeZone="Mars")
    assert update_refusals(CRON_JOBS, cron_job("@hourly", timeZone="Mars"), old) == []


def test_whatever_is_reported_of_a_cron_job_is_taken() -> None:
    made = decoded(CRON_JOBS, cron_job())
    changed = decoded(CRON_JOBS, {**cron_job("@hourly"), "status": {"active": [{"name": "x"}]}})
    CronJobStatusStrategy().prepare_for_update(changed, made)
    assert list(CronJobStatusStrategy().validate_update(changed, made)) == []
    assert changed["spec"] == made["spec"]
    shown = {column.name: column.cell(changed) for column in CRON_JOBS.columns}
    assert (shown["Schedule"], shown["Suspend"], shown["Active"], shown["Last Schedule"]) == (
        "@daily",
        "False",
        1,
        "<none>",
    )
    assert (shown["Timezone"], shown["Containers"], shown["Selector"]) == ("<none>", "c", "<none>")
