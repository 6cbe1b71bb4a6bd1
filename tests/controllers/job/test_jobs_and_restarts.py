"""A job controller that stops and starts again goes on where it was, with no pod too many and none counted twice."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest_asyncio
from awaiting import until_gone
from controllers_on_a_server import ControlledServer, controlled_server, managed
from jobs_and_pods import JobsAndPods

from pilothouse.client import DeleteOptions, name_of, uid_of
from pilothouse.controllers.config import JobConfig
from pilothouse.controllers.context import ControllerConfig


@pytest_asyncio.fixture
async def server(tmp_path: Path) -> AsyncIterator[ControlledServer]:
    quick = JobConfig(sync_batch_period=0.01, pod_failure_backoff=0.0, max_pod_failure_backoff=0.0)
    async with controlled_server(tmp_path) as server:
        yield replace(server, config=ControllerConfig(jobs=quick))


async def test_a_restarted_controller_counts_missed_pods(server: ControlledServer) -> None:
    there = JobsAndPods(server.client, "default")
    async with managed(server, "job"):
        await there.create("j", completions=8, parallelism=4)
        one, two, three, four = await there.until_active(4)
        await there.until_job("j", lambda status: status.get("active") == 4)
    await there.succeed(one)
    await there.succeed(two)
    await there.pods.delete(name_of(three))
    # It had written that the first one ended, and had let it go, but not counted it.
    uncounted = {"uncountedTerminatedPods": {"succeeded": [uid_of(one)]}}
    await there.jobs.patch("j", {"status": uncounted}, subresource="status")
    await there.pods.patch(name_of(one), {"metadata": {"finalizers": None}})
    async with managed(server, "job"):
        status = await there.until_job("j", lambda status: status.get("succeeded") == 2 and status.get("active") == 4)
        assert status["failed"] == 1
        assert status["uncountedTerminatedPods"] == {}
        pods = await there.until_active(4)
        assert uid_of(four) in map(uid_of, pods)
        for pod in pods:
            await there.succeed(pod)
        for pod in await there.until_active(2):
            await there.succeed(pod)
        status = await there.until_job("j", lambda status: status.get("completionTime"))
    assert (status["succeeded"], status["failed"]) == (8, 1)


async def test_pods_of_a_job_deleted_during_downtime_are_released(server: ControlledServer) -> None:
    there = JobsAndPods(server.client, "default")
    async with managed(server, "job"):
        await there.create("j")
        [pod] = await there.until_active(1)
    await there.jobs.delete("j", DeleteOptions(propagation_policy="Background"))
    await there.pods.delete(name_of(pod))  # as the garbage collector does
    async with managed(server, "job"):
        await until_gone(there.pods, name_of(pod))
