"""An operator of kubernetes_asyncio, as a task beside the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from backups import BACKUP, cron_job_of

from pilothouse.testing import API

kubernetes = pytest.importorskip("kubernetes_asyncio")

BACKUPS = ("example.com", "v1", "default", "backups")


class Operator:
    def __init__(self, api: Any) -> None:
        self.backups, self.batch = kubernetes.client.CustomObjectsApi(api), kubernetes.client.BatchV1Api(api)

    async def run(self) -> None:
        """What comes is told by a watch, which begins again when the server ends it."""
        while True:
            try:
                async with kubernetes.watch.Watch().stream(
                    self.backups.list_namespaced_custom_object, *BACKUPS
                ) as events:
                    async for event in events:
                        if event["type"] == "ADDED":
                            await self.reconcile(event["object"])
            except kubernetes.client.ApiException:
                await asyncio.sleep(0.05)

    async def reconcile(self, backup: Any) -> None:
        try:
            await self.batch.create_namespaced_cron_job("default", cron_job_of(backup))
        except kubernetes.client.ApiException as error:
            if error.status != 409:
                raise


@asynccontextmanager
async def running(kubeconfig: object) -> AsyncIterator[Operator]:
    """Run the operator for as long as the block lasts, with one Backup."""
    async with await kubernetes.config.new_client_from_config(str(kubeconfig)) as api:
        operator = Operator(api)
        task = asyncio.create_task(operator.run())
        await operator.backups.create_namespaced_custom_object(*BACKUPS, BACKUP)
        yield operator
        task.cancel()


async def first_of(listing: Callable[..., Any]) -> Any:
    async with asyncio.timeout(10), kubernetes.watch.Watch().stream(listing, "default") as events:
        return (await anext(events))["object"]


async def test_a_backup_gets_a_cron_job(kubeconfig: object) -> None:
    async with running(kubeconfig) as operator:
        assert (await first_of(operator.batch.list_namespaced_cron_job)).spec.schedule == "@hourly"


async def test_a_server_that_is_in_trouble_is_asked_again(kubeconfig: object, pilothouse: API) -> None:
    async with pilothouse.fault(verbs=["create"], resources=["cronjobs.batch"], times=2, answer=503) as trouble:
        async with running(kubeconfig) as operator:
            await first_of(operator.batch.list_namespaced_cron_job)
        assert (await trouble.status())["hits"] == 2


async def test_an_hour_later_the_backup_is_made(kubeconfig: object, pilothouse: API) -> None:
    async with running(kubeconfig) as operator:
        await first_of(operator.batch.list_namespaced_cron_job)
        await pilothouse.clock.step("1h")
        assert (await first_of(operator.batch.list_namespaced_job)).metadata.name.startswith("photos-")


async def test_a_backup_comes_back_with_the_snapshot_that_has_it(kubeconfig: object, pilothouse: API) -> None:
    async with running(kubeconfig) as operator:
        before = await pilothouse.snapshot()
        await operator.backups.delete_namespaced_custom_object(*BACKUPS, "photos")
        await pilothouse.restore(before)
        found = await operator.backups.get_namespaced_custom_object(*BACKUPS, "photos")
        assert found["spec"] == BACKUP["spec"]
