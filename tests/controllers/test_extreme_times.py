"""Times and durations as far away as the API can say: controllers compare them without leaving the years 1 to 9999."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from pilothouse.client.fake_clock import FakeClock
from pilothouse.controllers.cronjob.timing import due_time, schedule_of
from pilothouse.controllers.disruption.status import disrupted
from pilothouse.controllers.leaderelection.candidates import candidate_of
from pilothouse.controllers.leaderelection.controller import is_expired
from pilothouse.controllers.nodelifecycle.health import observe
from pilothouse.controllers.ttlafterfinished import seconds_left
from pilothouse.kinds.pods import is_available, next_availability
from pilothouse.machinery.adjustable_time import AdjustableTime
from pilothouse.machinery.objects import Json

MAX_INT32, MAX_INT64 = 2**31 - 1, 2**63 - 1
FIRST, LAST = "0001-01-02T00:00:00Z", "9999-12-31T23:59:59Z"


def _ready(since: str) -> Json:
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": since}
    return {"metadata": {"name": "p"}, "status": {"conditions": [condition]}}


def _cron(deadline: int) -> Json:
    spec = {"schedule": "* * * * *", "startingDeadlineSeconds": deadline}
    return {"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}, "spec": spec}


def _job(ended: str) -> Json:
    condition = {"type": "Complete", "status": "True", "lastTransitionTime": ended}
    return {
        "metadata": {"name": "j", "namespace": "n"},
        "spec": {"ttlSecondsAfterFinished": MAX_INT32},
        "status": {"conditions": [condition]},
    }


def _lease(moment: str) -> Json:
    return {
        "metadata": {"name": "l"},
        "spec": {"renewTime": moment.replace("Z", ".000000Z"), "leaseDurationSeconds": MAX_INT32},
    }


COMPARISONS: dict[str, Callable[[str, datetime], Any]] = {
    "lease": lambda moment, now: is_expired(_lease(moment), now),
    "candidate": lambda moment, now: candidate_of(_lease(moment), now),
    "node": lambda moment, now: observe(None, {"metadata": {}}, _lease(moment), FakeClock(now.timestamp())),
    "job": lambda moment, now: seconds_left(_job(moment), now),
    "pod": lambda moment, now: is_available(_ready(moment), MAX_INT32, now),
    "pods": lambda moment, now: next_availability([_ready(moment)], MAX_INT32, now),
    "budget": lambda moment, now: disrupted([_ready(moment)], {"status": {"disruptedPods": {"p": moment}}}, now),
}


@pytest.mark.parametrize("now", [datetime(1000, 1, 1, tzinfo=UTC), datetime(9700, 1, 1, tzinfo=UTC)])
@pytest.mark.parametrize("moment", [FIRST, LAST])
@pytest.mark.parametrize("comparison", COMPARISONS)
def test_no_moment_is_too_far_away_to_be_compared(comparison: str, moment: str, now: datetime) -> None:
    COMPARISONS[comparison](moment, now)


@pytest.mark.parametrize("deadline", [0, MAX_INT32, 10**11, 10**14, MAX_INT64])
def test_a_cron_job_may_have_any_deadline(deadline: int) -> None:
    cron = _cron(deadline)
    due_time(cron, schedule_of(cron), datetime(2026, 1, 1, 1, tzinfo=UTC))


async def test_a_set_clock_stays_in_the_range_of_representable_times() -> None:
    async def let_work() -> None:
        pass

    clock = AdjustableTime()
    for wall in (-1e18, 1e18):
        await clock.set(wall, let_work)
        assert 1000 <= datetime.fromtimestamp(clock.wall(), UTC).year <= 9700
    await clock.step(1e12, let_work)
    assert datetime.fromtimestamp(clock.wall(), UTC).year == 9700
