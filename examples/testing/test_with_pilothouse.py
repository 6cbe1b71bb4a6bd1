"""An operator of our own controller framework, in the event loop of the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from backups import BACKUP, cron_job_of

from pilothouse.client import Client, Controller, GroupVersionResource, Json, SharedInformerFactory, enqueue_keys
from pilothouse.errors import AlreadyExists, NotFound
from pilothouse.testing import API

BACKUPS = GroupVersionResource("example.com", "v1", "backups")
CRON_JOBS = GroupVersionResource("batch", "v1", "cronjobs")
JOBS = GroupVersionResource("batch", "v1", "jobs")


class Operator:
    def __init__(self, client: Client) -> None:
        self._client = client
        self.informers = SharedInformerFactory(client)
        self.controller = Controller("backups", self.reconcile, caches=(self.informers.for_resource(BACKUPS),))
        self.informers.for_resource(BACKUPS).add_event_handler(enqueue_keys(self.controller.queue))

    async def reconcile(self, key: str) -> None:
        """What fails is tried again, later each time."""
        namespace, _, name = key.partition("/")
        try:
            backup = self.informers.lister(BACKUPS).namespace(namespace).get(name)
            await self._client.for_resource(CRON_JOBS, namespace=namespace).create(cron_job_of(backup))
        except (NotFound, AlreadyExists):
            return


@asynccontextmanager
async def running(client: Client) -> AsyncIterator[None]:
    operator = Operator(client)
    async with operator.informers, asyncio.TaskGroup() as tasks:
        tasks.create_task(operator.controller.run())
        yield
        operator.controller.stop()


async def first_of(client: Client, resource: GroupVersionResource) -> Json:
    """Return the first object that there is, or will be."""
    async with await client.for_resource(resource, namespace="default").watch() as events:
        return (await anext(events)).object


async def test_a_backup_gets_a_cron_job(kube_client: Client) -> None:
    async with running(kube_client):
        await kube_client.for_resource(BACKUPS, namespace="default").create(BACKUP)
        assert (await first_of(kube_client, CRON_JOBS))["spec"]["schedule"] == "@hourly"


async def test_a_server_that_is_in_trouble_is_asked_again(kube_client: Client, pilothouse: API) -> None:
    async with pilothouse.fault(verbs=["create"], resources=["cronjobs.batch"], times=2, answer=503) as trouble:
        async with running(kube_client):
            await kube_client.for_resource(BACKUPS, namespace="default").create(BACKUP)
            await first_of(kube_client, CRON_JOBS)
        assert (await trouble.status())["hits"] == 2


async def test_an_hour_later_the_backup_is_made(kube_client: Client, pilothouse: API) -> None:
    async with running(kube_client):
        await kube_client.for_resource(BACKUPS, namespace="default").create(BACKUP)
        await first_of(kube_client, CRON_JOBS)
        await pilothouse.clock.step("1h")
        assert (await first_of(kube_client, JOBS))["metadata"]["name"].startswith("photos-")


async def test_what_was_there_before_the_operator_is_served_too(kube_client: Client, pilothouse: API) -> None:
    before = await pilothouse.snapshot()
    async with running(kube_client):
        await kube_client.for_resource(BACKUPS, namespace="default").create(BACKUP)
        await first_of(kube_client, CRON_JOBS)
        await pilothouse.restore(before)
        await kube_client.for_resource(BACKUPS, namespace="default").create(BACKUP)
        await first_of(kube_client, CRON_JOBS)
