"""An operator of kr8s, as a task beside the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from backups import BACKUP, cron_job_of

from pilothouse.testing import API

kr8s = pytest.importorskip("kr8s")
objects = pytest.importorskip("kr8s.asyncio.objects")

Backup = objects.new_class("Backup", version="example.com/v1")


async def operator(api: Any) -> None:
    """What comes is told by a watch, which begins again when the server ends it."""
    while True:
        try:
            async for event, backup in api.watch(Backup, namespace="default"):
                cron_job = await objects.CronJob(cron_job_of(backup.raw), api=api)
                if event == "ADDED" and not await cron_job.exists():
                    await cron_job.create()
        except Exception:
            await asyncio.sleep(0.05)


@asynccontextmanager
async def running(kubeconfig: object) -> AsyncIterator[Any]:
    """Run the operator for as long as the block lasts, with one Backup."""
    api = await kr8s.asyncio.api(kubeconfig=str(kubeconfig))
    task = asyncio.create_task(operator(api))
    await (await Backup(BACKUP, api=api)).create()
    yield api
    task.cancel()


async def first_of(api: Any, kind: Any) -> Any:
    async with asyncio.timeout(10):
        _, obj = await anext(api.watch(kind, namespace="default"))
    return obj


async def test_a_backup_gets_a_cron_job(kubeconfig: object) -> None:
    async with running(kubeconfig) as api:
        assert (await first_of(api, objects.CronJob)).spec.schedule == "@hourly"


async def test_a_server_that_is_in_trouble_is_asked_again(kubeconfig: object, pilothouse: API) -> None:
    async with pilothouse.fault(verbs=["create"], resources=["cronjobs.batch"], times=2, answer=503) as trouble:
        async with running(kubeconfig) as api:
            await first_of(api, objects.CronJob)
        assert (await trouble.status())["hits"] == 2


async def test_an_hour_later_the_backup_is_made(kubeconfig: object, pilothouse: API) -> None:
    async with running(kubeconfig) as api:
        await first_of(api, objects.CronJob)
        await pilothouse.clock.step("1h")
        assert (await first_of(api, objects.Job)).name.startswith("photos-")


async def test_a_backup_comes_back_with_the_snapshot_that_has_it(kubeconfig: object, pilothouse: API) -> None:
    async with running(kubeconfig) as api:
        before = await pilothouse.snapshot()
        await (await Backup(BACKUP, api=api)).delete()
        await pilothouse.restore(before)
        assert await (await Backup(BACKUP, api=api)).exists()
