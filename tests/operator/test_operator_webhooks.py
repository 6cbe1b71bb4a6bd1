"""Webhooks of a manager, as methods of its reconcilers: a test server calls them without further configuration."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from prometheus_client.exposition import generate_latest

from pilothouse.builder import Errors, Minimum, forbidden
from pilothouse.errors import BadRequest, Forbidden, Invalid
from pilothouse.operator import (
    AdmissionRequest,
    Denied,
    Json,
    Manager,
    Object,
    Reconciler,
    converting,
    kind,
    mutating,
    validating,
)
from pilothouse.testing import API


@kind(group="demo.example.com", version="v1", status=True)
class Backup(Object):
    volume: str
    keep: Annotated[int, Minimum(0)] = 0


@kind(group="demo.example.com", version="v1alpha1", kind="Backup", status=True, storage=False)
class OldBackup(Object):
    disk: str
    keep: int = 0


class BackupReconciler(Reconciler[Backup]):
    async def reconcile(self, backup: Backup) -> None: ...

    @mutating
    def default(self, backup: Backup, request: AdmissionRequest) -> None:
        backup.keep = backup.keep or 7
        backup.metadata.annotations["demo.example.com/by"] = request.user

    @validating(operations=["UPDATE"])
    def keep_volume(self, backup: Backup, old: Backup) -> Errors:
        if backup.volume != old.volume:
            yield forbidden("spec.volume", "field is immutable")

    @validating(operations=["DELETE"])
    async def keep_named(self, backup: Backup) -> None:
        if backup.metadata.name == "keep":
            raise Denied("this backup is kept")

    @converting(from_=OldBackup, to=Backup)
    def upgrade(self, old: OldBackup) -> Backup:
        return Backup(volume=old.disk, keep=old.keep)

    @converting(from_=Backup, to=OldBackup)
    def downgrade(self, new: Backup) -> OldBackup:
        return OldBackup(disk=new.volume, keep=new.keep)


def backup(name: str, version: str = "v1", **spec: object) -> Json:
    return {"apiVersion": f"demo.example.com/{version}", "kind": "Backup", "metadata": {"name": name}, "spec": spec}


async def test_reviews_and_conversions_reach_the_methods(pilothouse: API, kube_client: Any) -> None:
    async with Manager([BackupReconciler], config=pilothouse.config(), install_crds=True) as manager:
        await manager.wait_ready()
        backups = kube_client.resource("demo.example.com/v1", "backups", namespace="default")
        old = kube_client.resource("demo.example.com/v1alpha1", "backups", namespace="default")
        stored = await backups.create(backup("keep", volume="a"))
        assert stored["spec"] == {"volume": "a", "keep": 7}
        assert stored["metadata"]["annotations"] == {"demo.example.com/by": "kubernetes-admin"}
        with pytest.raises(Invalid, match=r'"keep-volume.backups.demo.example.com" denied .*field is immutable'):
            await backups.update({**stored, "spec": {"volume": "b"}})
        with pytest.raises(Forbidden, match="this backup is kept"):
            await backups.delete("keep")
        assert (await old.get("keep"))["spec"] == {"disk": "a", "keep": 7}
        await old.create(backup("old", version="v1alpha1", disk="c", keep=1))
        assert (await backups.get("old"))["spec"] == {"volume": "c", "keep": 1}
        text = generate_latest(manager.registry).decode()
        assert 'controller_runtime_webhook_requests_total{code="200",webhook="/convert"}' in text
    await backups.delete("keep")


@pytest.mark.pilothouse(webhooks=("127.0.0.1", 0))
async def test_the_address_of_the_fixture_serves(pilothouse: API, kube_client: Any, pilothouse_webhooks: Any) -> None:
    async with Manager(
        [BackupReconciler], config=pilothouse.config(), install_crds=True, webhooks=pilothouse_webhooks
    ) as manager:
        await manager.wait_ready()
        assert manager.webhook_url == pilothouse_webhooks.url
        backups = kube_client.resource("demo.example.com/v1", "backups", namespace="default")
        stored = await backups.create(backup("a", volume="a"))
        assert stored["spec"]["keep"] == 7


class ConfigMapPolicy(Reconciler[Any]):
    kind = "v1 ConfigMap"

    @validating(operations=["CREATE"], namespace_selector={"matchLabels": {"team": "a"}})
    def needs_labels(self, config: Json, request: AdmissionRequest) -> None:
        request.warn(f"{request.operation} by {request.user}")
        if "labels" not in config["metadata"]:
            raise Denied("set a label", code=400, reason="BadRequest")


async def test_a_reconciler_without_reconcile_only_serves_its_webhooks(pilothouse: API, kube_client: Any) -> None:
    team = {"metadata": {"name": "team", "labels": {"team": "a"}}}
    await kube_client.resource("v1", "namespaces").create(team)
    async with Manager([ConfigMapPolicy], name="policy", config=pilothouse.config()) as manager:
        await manager.wait_ready()
        assert manager.reconcilers == []
        with pytest.raises(BadRequest, match="set a label"):
            await kube_client.resource("v1", "configmaps", namespace="team").create({"metadata": {"name": "b"}})
        elsewhere = kube_client.resource("v1", "configmaps", namespace="default")
        assert await elsewhere.create({"metadata": {"name": "b"}})
