"""ttl-after-finished-controller: jobs go some time after they finished."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import pytest_asyncio
from awaiting import until, until_gone
from controllers_on_a_server import ControlledServer, controlled_server, running
from prometheus_client import CollectorRegistry

from pilothouse.client.rest.resource import ResourceClient
from pilothouse.controllers.manager import ControllerManager
from pilothouse.controllers.table import enabled
from pilothouse.controllers.ttlafterfinished import JobFinishTimeUnknown, seconds_left
from pilothouse.machinery.objects import Json, metadata, name_of
from pilothouse.machinery.times import format_time


@pytest_asyncio.fixture
async def server(tmp_path: Path) -> AsyncIterator[ControlledServer]:
    async with controlled_server(tmp_path) as server:
        yield server


def manager(server: ControlledServer) -> ControllerManager:
    return ControllerManager(server.client, enabled(["ttl-after-finished"]), registry=CollectorRegistry())


def jobs(server: ControlledServer) -> ResourceClient:
    return server.client.resource("batch/v1", "jobs", namespace="default")


async def job(server: ControlledServer, name: str, ttl: int | None, *, ended: timedelta | None) -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    spec: Json = {"template": template, "ttlSecondsAfterFinished": ttl}
    await jobs(server).create({"metadata": {"name": name}, "spec": spec})
    if ended is None:
        return
    when = format_time(datetime.now(UTC) - ended)
    types = ("FailureTarget", "Failed")
    conditions = [{"type": type_, "status": "True", "lastTransitionTime": when} for type_ in types]
    await jobs(server).patch(name, {"status": {"startTime": when, "conditions": conditions}}, subresource="status")


async def test_jobs_go_when_their_time_is_over(server: ControlledServer) -> None:
    hour = timedelta(hours=1)
    await job(server, "over", 60, ended=hour)
    await job(server, "not-yet", 7200, ended=hour)
    await job(server, "for-ever", None, ended=hour)
    await job(server, "running", 0, ended=None)
    async with running(manager(server)):
        await until(jobs(server), "over", lambda found: metadata(found).get("deletionTimestamp"))
        await job(server, "soon", 1, ended=timedelta())
        await until(jobs(server), "soon", lambda found: metadata(found).get("deletionTimestamp"))
        assert metadata(await jobs(server).get("soon"))["finalizers"] == ["foregroundDeletion"]
        await jobs(server).patch("not-yet", {"spec": {"ttlSecondsAfterFinished": 10}})
        await until(jobs(server), "not-yet", lambda found: metadata(found).get("deletionTimestamp"))
    for item in (await jobs(server).list())["items"]:
        assert bool(metadata(item).get("deletionTimestamp")) is (name_of(item) in ("over", "soon", "not-yet"))
    await jobs(server).patch("over", {"metadata": {"finalizers": None}})
    await until_gone(jobs(server), "over")


def test_a_job_that_does_not_say_when_it_finished_is_an_error() -> None:
    ended: Json = {"conditions": [{"type": "Complete", "status": "True"}]}
    with pytest.raises(JobFinishTimeUnknown, match="unable to find the time when the Job ns/j finished"):
        seconds_left({"metadata": {"namespace": "ns", "name": "j"}, "spec": {}, "status": ended}, datetime.now(UTC))
