"""The generated roles give an operator what it needs: it runs as its service account, with its declared use only."""

from __future__ import annotations

from typing import Any

import pytest
from awaiting import until, until_gone

from pilothouse.operator import (
    Condition,
    Json,
    Manager,
    Object,
    Reconciler,
    Watch,
    WebhookOptions,
    converting,
    kind,
    validating,
)
from pilothouse.scaffold.operator_code import load_operator
from pilothouse.testing import API


@kind(group="demo.example.com", version="v1", status=True)
class Fleet(Object):
    size: int = 1


@kind(group="demo.example.com", version="v1alpha1", kind="Fleet", status=True, storage=False)
class OldFleet(Object):
    size: int = 1


class FleetReconciler(Reconciler[Fleet]):
    owns = ("v1 ConfigMap",)
    watches = (Watch("v1 Secret", to=lambda secret: []),)
    finalizer = "demo.example.com/fleet"

    async def reconcile(self, fleet: Fleet) -> None:
        data = {"size": str(fleet.size)}
        meta = {"name": fleet.metadata.name}
        await self.apply(fleet, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data})
        self.event(fleet, "Applied", "The ConfigMap is as it should be.")
        fleet.status.conditions.set(Condition("Ready", True, "Applied"))

    async def finalize(self, fleet: Fleet) -> None:
        for owned in self.list("v1 ConfigMap", fleet.metadata.namespace, owner=fleet):
            await self.delete(owned)

    @validating(operations=["CONNECT"])  # never called: no network leads to the Service
    def check(self, fleet: Fleet) -> None: ...

    @converting(from_=OldFleet, to=Fleet)
    def upgrade(self, fleet: OldFleet) -> Fleet:
        return Fleet(size=fleet.size)


manager = Manager([FleetReconciler], name="ships", leader_election="ships/ships")


@pytest.mark.pilothouse(flags={"authorization_mode": "RBAC"})
async def test_an_operator_runs_with_its_generated_roles(pilothouse: API, kube_client: Any) -> None:
    operator = load_operator(f"{__name__}:manager", namespace="ships")
    for objects in operator.files().values():
        for obj in objects:
            await create(kube_client, obj)
    account = await pilothouse.service_account("ships/ships")
    fleets = kube_client.resource("demo.example.com/v1", "fleets", namespace="default")
    maps = kube_client.resource("v1", "configmaps", namespace="default")
    running = Manager(
        [FleetReconciler],
        name="ships",
        config=account.config(),
        leader_election="ships/ships",
        webhooks=WebhookOptions(service="ships/ships", host="127.0.0.1", port=0),
    )
    async with running:
        await running.wait_ready()
        await fleets.create({"apiVersion": "demo.example.com/v1", "kind": "Fleet", "metadata": {"name": "north"}})
        await until(fleets, "north", lambda obj: (obj.get("status") or {}).get("conditions"))
        assert (await maps.get("north"))["data"] == {"size": "1"}
        await fleets.delete("north")
        await until_gone(fleets, "north")
        await until_gone(maps, "north")
    events = (await kube_client.resource("v1", "events", namespace="default").list())["items"]
    assert [event["reason"] for event in events if event["involvedObject"].get("name") == "north"] == ["Applied"]
    hooks = kube_client.resource("admissionregistration.k8s.io/v1", "validatingwebhookconfigurations")
    assert (await hooks.get("ships"))["webhooks"][0]["clientConfig"]["caBundle"]
    definitions = kube_client.resource("apiextensions.k8s.io/v1", "customresourcedefinitions")
    conversion = (await definitions.get("fleets.demo.example.com"))["spec"]["conversion"]["webhook"]
    assert conversion["clientConfig"]["caBundle"]


async def create(client: Any, obj: Json) -> None:
    namespace = obj["metadata"].get("namespace", "")
    plural = f"{obj['kind'].lower()}s"
    await client.resource(obj["apiVersion"], plural, namespace=namespace).create(obj)
