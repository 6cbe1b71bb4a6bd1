"""cronjob-controller: jobs are made when they are due."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio
from awaiting import until, until_all, until_gone
from controllers_on_a_server import ControlledServer, controlled_server, managed

from pilothouse.client import Client, Json, ResourceClient, name_of, uid_of
from pilothouse.machinery.objects import annotations_of, labels_of, metadata
from pilothouse.machinery.times import format_time

pytestmark = pytest.mark.asyncio(loop_scope="module")

POD: Json = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}


def ago(**time: float) -> str:
    return format_time(datetime.now(UTC) - timedelta(**time))


def once_a_day() -> str:
    """A schedule that was due a minute ago, and will not be again while a test runs."""
    return f"{datetime.now(UTC) - timedelta(minutes=1):%M %H * * *}"


@dataclass(frozen=True)
class Crons:
    client: Client
    namespace: str

    def of(self, plural: str, api: str = "batch/v1") -> ResourceClient:
        return self.client.resource(api, plural, namespace=self.namespace)

    @property
    def jobs(self) -> ResourceClient:
        return self.of("jobs")

    @property
    def crons(self) -> ResourceClient:
        return self.of("cronjobs")

    async def create(self, *, last: str = "", schedule: str = "", **spec: Any) -> Json:
        """A CronJob that has last run then, made so that nobody sees it before it has. By default one is due."""
        template = {"metadata": {"labels": {"from": "c"}}, "spec": {"template": POD}}
        given = {
            "schedule": schedule or once_a_day(),
            "timeZone": "UTC",
            "jobTemplate": template,
            "suspend": True,
            **spec,
        }
        made = await self.crons.create({"metadata": {"name": "c"}, "spec": given})
        if last:
            await self.crons.patch("c", {"status": {"lastScheduleTime": last}}, subresource="status")
        return made

    async def resume(self) -> None:
        await self.crons.patch("c", {"spec": {"suspend": False}})

    async def job_of(self, cron: Json, name: str, **status: Any) -> Json:
        owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "c", "uid": uid_of(cron), "controller": True}
        meta = {"name": name, "ownerReferences": [owner]}
        job = await self.jobs.create({"metadata": meta, "spec": {"template": POD}})
        if status:
            await self.jobs.patch(name, {"status": status}, subresource="status")
        return job

    async def until_event(self, reason: str) -> Json:
        events = self.of("events", "v1")
        found = await until_all(events, lambda events: any(each["reason"] == reason for each in events))
        return next(each for each in found if each["reason"] == reason)


def ended(type_: str, seconds: float) -> Json:
    when = ago(seconds=seconds)
    before = {"Complete": "SuccessCriteriaMet", "Failed": "FailureTarget"}[type_]
    conditions = [{"type": each, "status": "True", "lastTransitionTime": when} for each in (before, type_)]
    return {"startTime": when, "conditions": conditions} | ({"completionTime": when} if type_ == "Complete" else {})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ControlledServer]:
    async with controlled_server(tmp_path_factory.mktemp("crons")) as server, managed(server, "cronjob"):
        yield server


@pytest_asyncio.fixture(loop_scope="module")
async def there(server: ControlledServer, request: pytest.FixtureRequest) -> Crons:
    namespace = request.node.name.replace("_", "-")[5:60].strip("-")
    await server.create_namespace(namespace)
    return Crons(server.client, namespace)


async def test_a_job_that_is_due_is_made_once(there: Crons) -> None:
    cron = await there.create(last=ago(hours=1))
    await there.resume()
    status = (await until(there.crons, "c", lambda cron: cron["status"].get("active")))["status"]
    [job] = (await there.jobs.list())["items"]
    assert re.fullmatch(r"c-\d{8}", name_of(job))
    assert labels_of(job)["from"] == "c"
    [owner] = metadata(job)["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("CronJob", uid_of(cron), True)
    [active] = status["active"]
    assert (active["name"], active["uid"]) == (name_of(job), uid_of(job))
    scheduled = annotations_of(job)["batch.kubernetes.io/cronjob-scheduled-timestamp"]
    assert scheduled == status["lastScheduleTime"]
    event = await there.until_event("SuccessfulCreate")
    assert (event["message"], event["source"]) == (f"Created job {name_of(job)}", {"component": "cronjob-controller"})
    await there.jobs.patch(name_of(job), {"status": ended("Complete", 0)}, subresource="status")
    done = await until(there.crons, "c", lambda cron: not cron["status"].get("active"))
    assert done["status"]["lastSuccessfulTime"]
    event = await there.until_event("SawCompletedJob")
    assert event["message"] == f"Saw completed job: {name_of(job)}, condition: Complete"


async def test_many_missed_times_are_reported_and_one_job_is_created(there: Crons) -> None:
    await there.create(last=ago(days=2), schedule="* * * * *")
    await there.resume()
    event = await there.until_event("TooManyMissedTimes")
    assert event["message"] == (
        "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
    )
    assert len(await until_all(there.jobs, len)) == 1


async def test_a_job_that_runs_forbids_the_next(there: Crons) -> None:
    cron = await there.create(last=ago(hours=1), concurrencyPolicy="Forbid")
    job = await there.job_of(cron, "before")
    reference = {"apiVersion": "batch/v1", "kind": "Job", "namespace": there.namespace, "name": "before"}
    active = [{**reference, "uid": uid_of(job)}]
    await there.crons.patch("c", {"status": {"active": active}}, subresource="status")
    await there.resume()
    event = await there.until_event("JobAlreadyActive")
    assert event["message"] == "Not starting job because prior execution is running and concurrency policy is Forbid"
    assert [name_of(each) for each in (await there.jobs.list())["items"]] == ["before"]


async def test_a_job_that_runs_is_replaced_by_the_next(there: Crons) -> None:
    cron = await there.create(last=ago(hours=1), concurrencyPolicy="Replace")
    job = await there.job_of(cron, "before")
    reference = {"apiVersion": "batch/v1", "kind": "Job", "namespace": there.namespace, "name": "before"}
    active = [{**reference, "uid": uid_of(job)}]
    await there.crons.patch("c", {"status": {"active": active}}, subresource="status")
    await there.resume()
    await until_gone(there.jobs, "before")
    await until(
        there.crons, "c", lambda cron: [each["name"] for each in cron["status"].get("active") or ()] != ["before"]
    )
    assert (await there.until_event("SuccessfulDelete"))["message"] == "Deleted job before"


async def test_only_the_last_jobs_are_kept(there: Crons) -> None:
    cron = await there.create(successfulJobsHistoryLimit=1, failedJobsHistoryLimit=0)
    await there.job_of(cron, "old", **ended("Complete", 200))
    await there.job_of(cron, "new", **ended("Complete", 100))
    await there.job_of(cron, "failed", **ended("Failed", 50))
    await until_all(there.jobs, lambda jobs: [name_of(job) for job in jobs] == ["new"])
    done = await until(there.crons, "c", lambda cron: (cron.get("status") or {}).get("lastSuccessfulTime"))
    assert done["status"]["lastSuccessfulTime"] == (await there.jobs.get("new"))["status"]["completionTime"]


async def test_missing_active_jobs_are_removed_and_unknown_jobs_are_reported(there: Crons) -> None:
    cron = await there.create()
    gone = [{"apiVersion": "batch/v1", "kind": "Job", "namespace": there.namespace, "name": "gone", "uid": "u"}]
    await there.crons.patch("c", {"status": {"active": gone}}, subresource="status")
    assert (await there.until_event("MissingJob"))["message"] == "Active job went missing: gone"
    await until(there.crons, "c", lambda cron: not cron["status"].get("active"))
    await there.job_of(cron, "stranger")
    event = await there.until_event("UnexpectedJob")
    assert event["message"] == "Saw a job that the controller did not create or forgot: stranger"


async def test_a_schedule_that_is_never_due_is_reported(there: Crons) -> None:
    await there.create(schedule="59 23 31 2 *")
    await there.resume()
    event = await there.until_event("InvalidSchedule")
    assert event["message"] == (
        "invalid schedule: 59 23 31 2 * : time difference between two schedules is less than 1 second"
    )
