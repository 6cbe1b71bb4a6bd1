"""persistentvolume-binder-controller: claims get volumes, keep them, lose them and give them back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from awaiting import until, until_all, until_gone
from controllers_on_a_server import ControlledServer, controlled_server, managed

from pilothouse.client.rest.resource import ResourceClient
from pilothouse.controllers.volume.persistentvolume.binding import new_claim_status
from pilothouse.controllers.volume.persistentvolume.matching import (
    SIMULATED,
    best_match,
    default_class,
    has_class,
    why_not,
)
from pilothouse.controllers.volume.persistentvolume.provisioning import new_volume
from pilothouse.controllers.volume.persistentvolume.volumes import NotDeletable, is_deleted_here
from pilothouse.machinery.objects import Json, annotations_of, name_of, uid_of

BINDER = ("persistentvolume-binder", "pv-protection", "pvc-protection")


@pytest_asyncio.fixture
async def server(tmp_path: Path) -> AsyncIterator[ControlledServer]:
    async with controlled_server(tmp_path) as server:
        yield server


def volumes(server: ControlledServer) -> ResourceClient:
    return server.client.resource("v1", "persistentvolumes")


def claims(server: ControlledServer) -> ResourceClient:
    return server.client.resource("v1", "persistentvolumeclaims", namespace="default")


def a_volume(name: str, size: str = "1Gi", policy: str = "Retain", **spec: Any) -> Json:
    source = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": f"/tmp/{name}"}}
    return {"metadata": {"name": name}, "spec": {**source, "persistentVolumeReclaimPolicy": policy, **spec}}


def a_claim(name: str, size: str = "1Gi", **spec: Any) -> Json:
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, "storageClassName": ""}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {**asked, **spec}}


def a_class(name: str, provisioner: str = SIMULATED, **fields: Any) -> Json:
    return {"metadata": {"name": name}, "provisioner": provisioner, **fields}


def phase_is(phase: str) -> Any:
    return lambda obj: (obj.get("status") or {}).get("phase") == phase


async def until_told(server: ControlledServer, reason: str) -> str:
    events = server.client.resource("v1", "events", namespace="default")
    found = await until_all(events, lambda items: any(each["reason"] == reason for each in items))
    (event,) = [each for each in found if each["reason"] == reason][:1]
    assert event["source"] == {"component": "persistentvolume-controller"}
    return str(event["message"])


async def test_a_claim_gets_the_smallest_volume_that_is_large_enough_and_gives_it_back(
    server: ControlledServer,
) -> None:
    for name, size in (("large", "9Gi"), ("small", "1Gi"), ("right", "5Gi")):
        await volumes(server).create(a_volume(name, size, policy="Delete" if name == "right" else "Retain"))
    async with managed(server, *BINDER):
        await until_all(volumes(server), lambda found: all(map(phase_is("Available"), found)))
        await claims(server).create(a_claim("c", "3Gi"))
        claim = await until(claims(server), "c", phase_is("Bound"))
        assert claim["spec"]["volumeName"] == "right"
        assert claim["status"]["capacity"] == {"storage": "5Gi"}
        marks = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}
        assert annotations_of(claim) == marks
        volume = await until(volumes(server), "right", phase_is("Bound"))
        ref = volume["spec"]["claimRef"]
        assert (ref["kind"], ref["namespace"], ref["name"], ref["uid"]) == (
            "PersistentVolumeClaim",
            "default",
            "c",
            uid_of(claim),
        )
        assert annotations_of(volume) == {"pv.kubernetes.io/bound-by-controller": "yes"}

        await claims(server).create(a_claim("waits", "20Gi"))
        assert "no persistent volumes available" in await until_told(server, "FailedBinding")
        await volumes(server).create(a_volume("huge", "30Gi"))
        await until(claims(server), "waits", phase_is("Bound"))
        await claims(server).delete("waits")
        await until(volumes(server), "huge", phase_is("Released"))
        await claims(server).delete("c")
        await until_gone(volumes(server), "right")

        await volumes(server).create(
            a_volume("chosen", policy="Recycle", claimRef={"namespace": "default", "name": "p"})
        )
        await until(volumes(server), "chosen", phase_is("Available"))
        await claims(server).create(a_claim("p"))
        assert (await until(claims(server), "p", phase_is("Bound")))["spec"]["volumeName"] == "chosen"
        await volumes(server).delete("chosen")
        await volumes(server).patch("chosen", {"metadata": {"finalizers": None}})
        await until(claims(server), "p", phase_is("Lost"))
        assert await until_told(server, "ClaimLost") == (
            "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
        )
        await claims(server).create(a_claim("wrong", volumeName="small", storageClassName="other"))
        assert await until_told(server, "VolumeMismatch") == (
            'Cannot bind to requested volume "small": storageClassName does not match'
        )


async def test_simulated_storage_is_there_at_once_or_when_a_node_was_selected(server: ControlledServer) -> None:
    classes = server.client.resource("storage.k8s.io/v1", "storageclasses")
    await classes.create(a_class("now"))
    await classes.create(a_class("later", volumeBindingMode="WaitForFirstConsumer"))
    await classes.create(a_class("others", "example.com/other"))
    await classes.create(a_class("by-hand", "kubernetes.io/no-provisioner"))
    async with managed(server, *BINDER):
        await claims(server).create(a_claim("c", "3Gi", storageClassName="now"))
        claim = await until(claims(server), "c", phase_is("Bound"))
        assert claim["spec"]["volumeName"] == f"pvc-{uid_of(claim)}"
        assert annotations_of(claim)["volume.kubernetes.io/storage-provisioner"] == SIMULATED
        volume = await volumes(server).get(claim["spec"]["volumeName"])
        assert volume["status"]["phase"] == "Bound"
        assert volume["spec"]["capacity"] == {"storage": "3Gi"}
        told = f"Successfully provisioned volume {name_of(volume)} using {SIMULATED}"
        assert await until_told(server, "ProvisioningSucceeded") == told

        await claims(server).create(a_claim("d", storageClassName="later"))
        waits = "waiting for first consumer to be created before binding"
        assert await until_told(server, "WaitForFirstConsumer") == waits
        await claims(server).patch("d", {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n"}}})
        await until(claims(server), "d", phase_is("Bound"))

        await claims(server).create(a_claim("e", storageClassName="others"))
        assert "external provisioner 'example.com/other'" in await until_told(server, "ExternalProvisioning")
        await claims(server).create(a_claim("f", storageClassName="by-hand"))
        missing = "no volume plugin matched name: kubernetes.io/no-provisioner"
        assert await until_told(server, "ProvisioningFailed") == missing

        unclassed = a_claim("g")
        del unclassed["spec"]["storageClassName"]
        await claims(server).create(unclassed)
        marked = {"storageclass.kubernetes.io/is-default-class": "true"}
        await classes.create(a_class("default") | {"metadata": {"name": "default", "annotations": marked}})
        found = await until(claims(server), "g", phase_is("Bound"))
        assert found["spec"]["storageClassName"] == "default"

        await claims(server).delete("c")
        await until_gone(volumes(server), name_of(volume))


def available(name: str, size: str = "1Gi", **spec: Any) -> Json:
    return a_volume(name, size, **spec) | {"status": {"phase": "Available"}}


def test_volumes_are_chosen_by_modes_class_labels_and_mode_of_use() -> None:
    labelled = available("labelled", "9Gi")
    labelled["metadata"]["labels"] = {"tier": "fast"}
    found = [
        available("many", accessModes=["ReadWriteOnce", "ReadOnlyMany"]),
        available("block", volumeMode="Block"),
        available("classed", storageClassName="x"),
        available("taken", claimRef={"namespace": "default", "name": "other"}),
        a_volume("pending"),
        labelled,
    ]
    assert name_of(best_match(a_claim("c"), found, delayed=False) or {}) == "labelled"
    assert name_of(best_match(a_claim("c", accessModes=["ReadOnlyMany"]), found, delayed=False) or {}) == "many"
    assert name_of(best_match(a_claim("c", volumeMode="Block"), found, delayed=False) or {}) == "block"
    assert name_of(best_match(a_claim("c", storageClassName="x"), found, delayed=False) or {}) == "classed"
    assert best_match(a_claim("c", selector={"matchLabels": {"tier": "slow"}}), found, delayed=False) is None
    assert best_match(a_claim("c"), found, delayed=True) is None
    assert name_of(best_match(a_claim("other"), found, delayed=True) or {}) == "taken"


@pytest.mark.parametrize(
    ("volume", "why"),
    [
        (a_volume("v", "1Mi"), "requested PV is too small"),
        (a_volume("v", storageClassName="x"), "storageClassName does not match"),
        (a_volume("v", volumeAttributesClassName="x"), "volumeAttributesClassName does not match"),
        (a_volume("v", volumeMode="Block"), "incompatible volumeMode"),
        (a_volume("v", accessModes=["ReadOnlyMany"]), "incompatible accessMode"),
        (a_volume("v"), ""),
    ],
)
def test_a_volume_that_is_named_must_be_right_too(volume: Json, why: str) -> None:
    assert why_not(volume, a_claim("c")) == why


def test_the_newest_default_class_counts_and_an_empty_class_is_one() -> None:
    marked = {"storageclass.kubernetes.io/is-default-class": "true"}
    classes = [
        {"metadata": {"name": name, "creationTimestamp": when, "annotations": marked}}
        for name, when in (
            ("old", "2020-01-01T00:00:00Z"),
            ("b", "2021-01-01T00:00:00Z"),
            ("a", "2021-01-01T00:00:00Z"),
        )
    ]
    assert name_of(default_class([*classes, a_class("other")]) or {}) == "a"
    assert default_class([]) is None
    assert has_class(a_claim("c"))


def test_claim_status_keeps_the_size_before_a_pending_resize() -> None:
    volume = a_volume("v", "5Gi")
    volume["metadata"]["annotations"] = {"volume.alpha.kubernetes.io/pre-resize-capacity": "3Gi"}
    assert new_claim_status(a_claim("c"), "Bound", volume)["capacity"] == {"storage": "3Gi"}
    bound = {**a_claim("c"), "status": {"phase": "Bound", "capacity": {"storage": "4Gi"}}}
    assert new_claim_status(bound, "Bound", volume)["capacity"] == {"storage": "4Gi"}
    assert new_claim_status(bound, "Lost", None) == {"phase": "Lost"}


def test_only_simulated_volumes_are_deleted_here() -> None:
    simulated = a_volume("v")
    simulated["metadata"]["annotations"] = {"pv.kubernetes.io/provisioned-by": SIMULATED}
    assert is_deleted_here(simulated)
    assert not is_deleted_here({"metadata": {}, "spec": {"csi": {}}})
    with pytest.raises(NotDeletable, match=r"host_path deleter only supports /tmp/.\+ but received provided /srv"):
        is_deleted_here(a_volume("v", hostPath={"path": "/srv"}))
    with pytest.raises(NotDeletable, match='volume "v": no deletable volume plugin matched'):
        is_deleted_here({"metadata": {"name": "v"}, "spec": {"nfs": {}}})


def test_a_simulated_volume_follows_the_topology_of_its_class() -> None:
    zones = {"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}
    fields: Json = {"allowedTopologies": [zones], "mountOptions": ["ro"], "reclaimPolicy": "Retain"}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **a_claim("c", volumeAttributesClassName="gold")}
    spec = new_volume(claim, a_class("s", **fields))["spec"]
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]
    assert spec["nodeAffinity"] == {"required": {"nodeSelectorTerms": terms}}
    assert (spec["mountOptions"], spec["persistentVolumeReclaimPolicy"]) == (["ro"], "Retain")
    assert spec["volumeAttributesClassName"] == "gold"
