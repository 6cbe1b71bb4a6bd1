"""Volumes that grow, classes that are in use, and claims that live as long as their pods."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
from awaiting import until, until_all, until_gone
from controllers_on_a_server import ControlledServer, controlled_server, managed

from pilothouse.controllers.volume.expand import grown_status
from pilothouse.controllers.volume.persistentvolume.matching import SIMULATED
from pilothouse.controllers.volume.vac_protection import FINALIZER, claim_classes
from pilothouse.machinery.objects import Json, labels_of, metadata, uid_of

ASKED: Json = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
CONTROLLERS = (
    "persistentvolume-binder",
    "persistentvolume-expander",
    "ephemeral-volume",
    "volumeattributesclass-protection-controller",
)


@pytest_asyncio.fixture
async def server(tmp_path: Path) -> AsyncIterator[ControlledServer]:
    async with controlled_server(tmp_path) as server:
        yield server


async def test_a_simulated_volume_grows_changes_its_class_and_follows_its_pod(server: ControlledServer) -> None:
    client = server.client
    classes, vacs = (
        client.resource("storage.k8s.io/v1", name) for name in ("storageclasses", "volumeattributesclasses")
    )
    claims, pods = (client.resource("v1", name, namespace="default") for name in ("persistentvolumeclaims", "pods"))
    await classes.create({"metadata": {"name": "s"}, "provisioner": SIMULATED, "allowVolumeExpansion": True})
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {**ASKED, "storageClassName": "s"}}
    volume = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}
    async with managed(server, *CONTROLLERS):
        gold = {"driverName": "simulated.pilothouse.dev", "parameters": {"iops": "9"}}
        await vacs.create({"metadata": {"name": "gold"}, **gold})
        await until(vacs, "gold", lambda vac: FINALIZER in metadata(vac)["finalizers"])
        spec = {"containers": [{"name": "c", "image": "i"}], "volumes": [volume]}
        pod = await pods.create({"metadata": {"name": "p"}, "spec": spec})
        claim = await until(claims, "p-scratch", lambda found: found["status"]["phase"] == "Bound")
        (owner,) = metadata(claim)["ownerReferences"]
        assert (owner["kind"], owner["uid"], owner["controller"]) == ("Pod", uid_of(pod), True)
        assert labels_of(claim) == {"a": "b"}

        wanted = {"resources": {"requests": {"storage": "2Gi"}}, "volumeAttributesClassName": "gold"}
        await claims.patch("p-scratch", {"spec": wanted})
        grown = await until(claims, "p-scratch", lambda found: found["status"]["capacity"] == {"storage": "2Gi"})
        grown = await until(claims, "p-scratch", lambda found: found["status"].get("currentVolumeAttributesClassName"))
        held = await client.resource("v1", "persistentvolumes").get(grown["spec"]["volumeName"])
        assert held["spec"]["capacity"] == {"storage": "2Gi"}
        assert held["spec"]["volumeAttributesClassName"] == "gold"

        await vacs.delete("gold")
        await claims.delete("p-scratch")
        await claims.patch("p-scratch", {"metadata": {"finalizers": None}})
        volumes = client.resource("v1", "persistentvolumes")
        await volumes.patch(held["metadata"]["name"], {"metadata": {"finalizers": None}})
        await until_gone(vacs, "gold")
        again = await until(claims, "p-scratch", lambda found: uid_of(found) != uid_of(claim))
        assert metadata(again)["ownerReferences"] == [owner]

        await claims.create({"metadata": {"name": "q-scratch"}, "spec": template["spec"]})
        await pods.create({"metadata": {"name": "q"}, "spec": spec})
        events = client.resource("v1", "events", namespace="default")
        found = await until_all(events, lambda items: any(each["reason"] == "FailedBinding" for each in items))
        (told,) = (each["message"] for each in found if each["reason"] == "FailedBinding")
        why = "PVC default/q-scratch was not created for pod default/q (pod is not owner)"
        assert told == f"ephemeral volume scratch: {why}"


def test_a_claim_that_has_grown_no_longer_says_that_it_is_growing() -> None:
    status: Json = {
        "capacity": {"storage": "1Gi"},
        "conditions": [{"type": "Resizing", "status": "True"}],
        "allocatedResourceStatuses": {"storage": "ControllerResizeInProgress"},
    }
    size = {"storage": "2Gi"}
    claim: Json = {"spec": {"resources": {"requests": size}}, "status": status}
    assert grown_status(claim) == {"capacity": size, "allocatedResources": size}


def test_a_claim_uses_the_classes_that_it_has_wants_and_is_changing_to() -> None:
    status = {"currentVolumeAttributesClassName": "b", "modifyVolumeStatus": {"targetVolumeAttributesClassName": "c"}}
    assert claim_classes({"spec": {"volumeAttributesClassName": "a"}, "status": status}) == {"a", "b", "c"}
