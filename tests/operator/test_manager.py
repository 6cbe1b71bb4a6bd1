"""Managers against a real server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any

from patience import PATIENCE

from pilothouse.builder import Column, Default, Minimum, Pattern
from pilothouse.client import Client, Json, ListOptions
from pilothouse.operator import Condition, Manager, Object, Reconciler, Result, kind
from pilothouse.testing import API

BACKUPS = "demo.example.com/v1"


@kind(
    group="demo.example.com",
    version="v1",
    status=True,
    short_names=["bk"],
    columns=[Column("Schedule", ".spec.schedule")],
)
class Backup(Object):
    schedule: Annotated[str, Pattern(r"^[0-9* ]+$"), Default("0 3 * * *")]
    keep: Annotated[int, Minimum(1)] = 7


def config_for(backup: Backup) -> Json:
    data = {"schedule": backup.schedule, "keep": str(backup.keep)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": backup.metadata.name}, "data": data}


class BackupReconciler(Reconciler[Backup]):
    owns = ("v1 ConfigMap",)
    finalizer = "demo.example.com/backup"

    async def reconcile(self, backup: Backup) -> Result | None:
        await self.apply(backup, config_for(backup))
        backup.status.conditions.set(Condition("Ready", True, "Applied"))
        return None

    async def finalize(self, backup: Backup) -> None:
        self.event(backup, "Finalized", "it is gone")


async def until(client: Client, api_version: str, plural: str, name: str, condition: Callable[[Json], Any]) -> Json:
    """Return the object as soon as it satisfies the condition."""
    resource = client.resource(api_version, plural, namespace="default")
    options = ListOptions(field_selector=f"metadata.name={name}")
    async with asyncio.timeout(PATIENCE), await resource.watch(options) as events:
        async for event in events:
            if event.type in ("ADDED", "MODIFIED") and condition(event.object):
                return event.object
    raise AssertionError("the watch ended")


async def test_the_life_of_an_object(api: API) -> None:
    client = api.client()
    async with Manager(reconcilers=[BackupReconciler], config=api.config(), install_crds=True) as manager:
        await manager.wait_ready()
        backups = client.resource(BACKUPS, "backups", namespace="default")
        made = await backups.create({"apiVersion": BACKUPS, "kind": "Backup", "metadata": {"name": "nightly"}})
        ready = await until(client, BACKUPS, "backups", "nightly", lambda obj: obj.get("status"))
        assert ready["status"]["conditions"][0]["observedGeneration"] == 1
        assert ready["metadata"]["finalizers"] == ["demo.example.com/backup"]
        config = await until(client, "v1", "configmaps", "nightly", lambda obj: True)
        assert config["data"] == {"schedule": "0 3 * * *", "keep": "7"}
        assert config["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
        await backups.patch("nightly", {"spec": {"keep": 3}})
        await until(client, "v1", "configmaps", "nightly", lambda obj: obj["data"]["keep"] == "3")
        await client.resource("v1", "configmaps", namespace="default").delete("nightly")
        await until(
            client, "v1", "configmaps", "nightly", lambda obj: obj["metadata"]["uid"] != config["metadata"]["uid"]
        )
        await backups.delete("nightly")
