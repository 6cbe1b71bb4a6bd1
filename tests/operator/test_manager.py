"""Managers against a real server."""

from __future__ import annotations

from typing import Annotated

from operator_parts import until

from pilothouse.builder import Column, Default, Minimum, Pattern
from pilothouse.client import Json
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
        await until(client, BACKUPS, "backups", "nightly", None)
