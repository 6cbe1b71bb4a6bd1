"""An operator of lightkube, as a task beside the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from backups import BACKUP, cron_job_of

from pilothouse.testing import API

lightkube = pytest.importorskip("lightkube")
generic_resource = pytest.importorskip("lightkube.generic_resource")
batch_v1 = pytest.importorskip("lightkube.resources.batch_v1")

Backup = generic_resource.create_namespaced_resource("example.com", "v1", "Backup", "backups")


async def operator(client: Any) -> None:
    """What comes is told by a watch, which begins again when the server ends it."""
    while True:
        try:
            async for event, backup in client.watch(Backup):
                if event == "ADDED":
                    cron_job = batch_v1.CronJob.from_dict(cron_job_of(backup.to_dict()))
                    await client.apply(cron_job, field_manager="backups")
        except lightkube.ApiError:
            await asyncio.sleep(0.05)


@asynccontextmanager
async def running(kubeconfig: object) -> AsyncIterator[Any]:
    """Run the operator for as long as the block lasts, with one Backup."""
    client = lightkube.AsyncClient(lightkube.KubeConfig.from_file(str(kubeconfig)), namespace="default")
    task = asyncio.create_task(operator(client))
    await client.create(Backup.from_dict(BACKUP))
    yield client
    task.cancel()
    await client.close()


async def first_of(client: Any, kind: Any) -> Any:
    async with asyncio.timeout(10):
        _, obj = await anext(aiter(client.watch(kind)))
    return obj


async def test_a_backup_gets_a_cron_job(kubeconfig: object) -> None:
    async with running(kubeconfig) as client:
        assert (await first_of(client, batch_v1.CronJob)).spec.schedule == "@hourly"


async def test_a_server_that_is_in_trouble_is_asked_again(kubeconfig: object, pilothouse: API) -> None:
    async with pilothouse.fault(verbs=["patch"], resources=["cronjobs.batch"], times=2, answer=503) as trouble:
        async with running(kubeconfig) as client:
            await first_of(client, batch_v1.CronJob)
        assert (await trouble.status())["hits"] == 2


async def test_an_hour_later_the_backup_is_made(kubeconfig: object, pilothouse: API) -> None:
    async with running(kubeconfig) as client:
        await first_of(client, batch_v1.CronJob)
        await pilothouse.clock.step("1h")
        assert (await first_of(client, batch_v1.Job)).metadata.name.startswith("photos-")


async def test_a_backup_comes_back_with_the_snapshot_that_has_it(kubeconfig: object, pilothouse: API) -> None:
    async with running(kubeconfig) as client:
        before = await pilothouse.snapshot()
        await client.delete(Backup, "photos")
        await pilothouse.restore(before)
        assert (await client.get(Backup, "photos"))["spec"] == BACKUP["spec"]
