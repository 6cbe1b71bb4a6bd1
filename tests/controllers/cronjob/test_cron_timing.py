"""When the jobs of CronJobs are due."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pilothouse.client import Json
from pilothouse.controllers.cronjob.runs import job_name, new_job
from pilothouse.controllers.cronjob.timing import Missed, NeverDue, due_time, schedule_of, seconds_to_next

NOON = datetime(2024, 5, 1, 12, 0, tzinfo=UTC)


def cron(schedule: str, *, created: str = "2024-05-01T11:00:30Z", last: str = "", **spec: Any) -> Json:
    given = {"schedule": schedule, "timeZone": "UTC", "jobTemplate": {"spec": {}}, **spec}
    meta = {"name": "c", "namespace": "ns", "uid": "u", "creationTimestamp": created}
    status = {"lastScheduleTime": last} if last else {}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": meta, "spec": given, "status": status}


def due(of: Json, now: datetime = NOON) -> tuple[str | None, Missed]:
    found = due_time(of, schedule_of(of), now)
    return None if found.time is None else f"{found.time:%d %H:%M:%S}", found.missed


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        (cron("0 * * * *"), ("01 12:00:00", Missed.NONE)),
        (cron("30 12 * * *"), (None, Missed.NONE)),
        (cron("0 * * * *", last="2024-05-01T11:30:00Z"), ("01 12:00:00", Missed.NONE)),
        (cron("0 * * * *", last="2024-05-01T12:00:00Z"), (None, Missed.NONE)),
        (cron("*/10 * * * *"), ("01 12:00:00", Missed.FEW)),
        (cron("* * * * *", last="2024-04-30T12:00:00Z"), ("01 12:00:00", Missed.MANY)),
        (cron("* * * * *", last="2024-04-30T12:00:00Z", startingDeadlineSeconds=50), ("01 12:00:00", Missed.NONE)),
        (cron("7 * * * *", startingDeadlineSeconds=60), (None, Missed.NONE)),
        (cron("@every 7m"), ("01 11:56:30", Missed.FEW)),
        (cron("30 6-16/4 * * 1-5", last="2024-04-26T14:30:00Z"), ("01 10:30:00", Missed.FEW)),
        # the first two lie a year apart and all others a minute
        (cron("* * * 1-5 *", last="2023-05-31T23:58:00Z"), ("01 12:00:00", Missed.FEW)),
    ],
)
def test_the_last_time_that_has_come(of: Json, expected: tuple[str | None, Missed]) -> None:
    assert due(of) == expected


def test_a_day_that_there_is_not_is_an_error() -> None:
    with pytest.raises(NeverDue, match="time difference between two schedules is less than 1 second"):
        due(cron("59 23 31 2 *"))


@pytest.mark.parametrize(
    ("of", "seconds"),
    [
        (cron("0 13 * * *"), 3600.1),
        (cron("* * * * *", last="2024-05-01T12:00:00Z"), 60.1),
        (cron("* * * * *", last="2024-04-01T12:00:00Z"), 60.1),
        (cron("@every 7m"), 3.5 * 60 + 0.1),
        (cron("59 23 31 2 *"), 0.0),
    ],
)
def test_the_wait_for_the_next(of: Json, seconds: float) -> None:
    assert seconds_to_next(of, schedule_of(of), NOON) == pytest.approx(seconds)


def test_a_zone_in_the_schedule_goes_before_that_of_the_spec() -> None:
    of = cron("CRON_TZ=Asia/Tokyo 0 21 * * *", timeZone="UTC")
    assert due(of) == ("01 12:00:00", Missed.NONE)


def test_a_job_is_named_by_its_minute_and_says_when_it_was_due() -> None:
    of = cron("0 * * * *", timeZone="Europe/Berlin")
    of["spec"]["jobTemplate"] = {"metadata": {"labels": {"a": "1"}, "annotations": {"b": "2"}}, "spec": {"x": 1}}
    job = new_job(of, NOON + timedelta(seconds=59))
    assert job["metadata"]["name"] == job_name(of, NOON) == "c-28576080"
    assert job["metadata"]["labels"] == {"a": "1"}
    scheduled = {"batch.kubernetes.io/cronjob-scheduled-timestamp": "2024-05-01T14:00:59+02:00"}
    assert job["metadata"]["annotations"] == {"b": "2"} | scheduled
    assert job["spec"] == {"x": 1}
    assert new_job(cron("0 * * * *"), NOON)["metadata"]["annotations"] == {
        "batch.kubernetes.io/cronjob-scheduled-timestamp": "2024-05-01T12:00:00Z"
    }
