"""Claims and volumes that do not agree with each other: which of them gives way, and what is said about it."""

from __future__ import annotations

from typing import Any, cast

import pytest

from pilothouse.client.cache.indexer import Indexer
from pilothouse.client.events.recorder import EventRecorder
from pilothouse.client.rest.client import Client
from pilothouse.controllers.pod_index import PODS_BY_CLAIM, claim_keys
from pilothouse.controllers.volume.persistentvolume.binding import Binding, Claims, Volumes
from pilothouse.controllers.volume.persistentvolume.claims import ClaimSyncs, Misbound
from pilothouse.controllers.volume.persistentvolume.provisioning import Provisioning
from pilothouse.controllers.volume.persistentvolume.volumes import VolumeSyncs
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.names import GroupVersionResource
from pilothouse.machinery.objects import Json, annotations_of, metadata, name_of, namespace_of

BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
BY_CONTROLLER = {"pv.kubernetes.io/bound-by-controller": "yes"}


class Server:
    """Takes every write as it is, and remembers the objects and what was said about them."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], Json] = {}
        self.told: list[tuple[str, str, str]] = []
        self._version = 100

    def for_resource(self, resource: GroupVersionResource, namespace: str = "") -> _Objects:
        return _Objects(self, resource.resource, namespace)

    def event(self, obj: Json, type_: str, reason: str, message: str) -> None:
        self.told.append((name_of(obj), reason, message))

    def write(self, resource: str, obj: Json) -> Json:
        self._version += 1
        obj = {**obj, "metadata": {**metadata(obj), "resourceVersion": str(self._version)}}
        self.objects[resource, namespace_of(obj), name_of(obj)] = obj
        return obj


class _Objects:
    def __init__(self, server: Server, resource: str, namespace: str) -> None:
        self._server, self._resource, self._namespace = server, resource, namespace

    async def update(self, obj: Json) -> Json:
        return self._server.write(self._resource, obj)

    update_status = update

    async def get(self, name: str) -> Json:
        try:
            return self._server.objects[self._resource, self._namespace, name]
        except KeyError:
            raise NotFound(f"{self._resource} {name} not found") from None

    async def delete(self, name: str) -> None:
        del self._server.objects[self._resource, self._namespace, name]


class World:
    def __init__(self) -> None:
        self.server = Server()
        client, recorder = cast("Client", self.server), cast("EventRecorder", self.server)
        self.volumes, self.claims, self.hastened = Volumes(), Claims(), list[str]()
        binding = Binding(client, self.volumes, self.claims, recorder)
        self.pods = Indexer({PODS_BY_CLAIM: claim_keys})
        self.classes = Indexer()
        provisioning = Provisioning(client, binding, self.volumes, recorder)
        self.claim_syncs = ClaimSyncs(self.volumes, self.classes, self.pods, binding, provisioning, recorder)
        self.volume_syncs = VolumeSyncs(client, self.claims, Indexer(), binding, recorder, self.hastened.append)

    def volume(self, name: str, *, phase: str = "Available", annotations: Any = None, **spec: Any) -> Json:
        spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}, **spec}
        meta = {"name": name, "annotations": annotations or {}}
        obj = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": meta, "spec": spec}
        written = self.server.write("persistentvolumes", {**obj, "status": {"phase": phase}})
        self.volumes.keep(written)
        return written

    def claim(self, name: str, *, phase: str = "Pending", annotations: Any = None, **spec: Any) -> Json:
        asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        meta = {"namespace": "d", "name": name, "uid": f"uid-{name}", "annotations": annotations or {}}
        obj = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "status": {"phase": phase}}
        written = self.server.write(
            "persistentvolumeclaims", {**obj, "spec": {"storageClassName": "", **asked, **spec}}
        )
        self.claims.keep(written)
        return written

    def phase(self, resource: str, name: str) -> str:
        namespace = "d" if resource == "persistentvolumeclaims" else ""
        return str(self.server.objects[resource, namespace, name]["status"]["phase"])


@pytest.fixture
def world() -> World:
    return World()


def ref(claim: str, uid: str | None = None) -> Json:
    return {"namespace": "d", "name": claim, "uid": f"uid-{claim}" if uid is None else uid}


async def test_a_bound_claim_is_lost_with_its_volume_or_its_name_or_to_another_claim(world: World) -> None:
    world.volume("taken", claimRef=ref("other"))
    for name, volume in (("gone", "nosuch"), ("nameless", ""), ("second", "taken")):
        await world.claim_syncs.sync(world.claim(name, phase="Bound", annotations=BOUND, volumeName=volume))
        assert world.phase("persistentvolumeclaims", name) == "Lost"
    assert world.server.told == [
        ("gone", "ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!"),
        ("nameless", "ClaimLost", "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!"),
        ("second", "ClaimMisbound", "Two claims are bound to the same volume, this one is bound incorrectly"),
    ]


async def test_a_claim_that_names_a_volume_waits_until_it_can_have_it(world: World) -> None:
    world.volume("taken", claimRef=ref("other"))
    await world.claim_syncs.sync(world.claim("early", volumeName="nosuch"))
    await world.claim_syncs.sync(world.claim("late", volumeName="taken"))
    assert world.phase("persistentvolumeclaims", "early") == world.phase("persistentvolumeclaims", "late") == "Pending"
    assert world.server.told == [("late", "FailedBinding", 'volume "taken" already bound to a different claim.')]
    with pytest.raises(Misbound, match='invalid binding of claim "d/odd" to volume "taken"'):
        await world.claim_syncs.sync(world.claim("odd", volumeName="taken", annotations=BY_CONTROLLER))
    world.volume("reserved", claimRef=ref("early", uid=""))
    await world.claim_syncs.sync(world.claim("early", volumeName="reserved"))
    assert world.phase("persistentvolumeclaims", "early") == world.phase("persistentvolumes", "reserved") == "Bound"
    held = world.server.objects["persistentvolumes", "", "reserved"]
    assert (held["spec"]["claimRef"]["uid"], annotations_of(held)) == ("uid-early", {})


@pytest.mark.parametrize("annotations", [BY_CONTROLLER, {}])
async def test_a_volume_is_released_if_its_claim_binds_another_volume(world: World, annotations: Json) -> None:
    world.claim("c", phase="Bound", annotations=BOUND, volumeName="other")
    volume = world.volume("v", phase="Bound", annotations=annotations, claimRef=ref("c"))
    await world.volume_syncs.sync(volume)
    assert world.phase("persistentvolumes", "v") == "Available"
    left = world.server.objects["persistentvolumes", "", "v"]["spec"].get("claimRef")
    assert left == (None if annotations else {"namespace": "d", "name": "c"})


async def test_a_volume_that_was_made_for_a_claim_that_took_another_is_deleted(world: World) -> None:
    world.claim("c", phase="Bound", annotations=BOUND, volumeName="other")
    made = {"pv.kubernetes.io/provisioned-by": "pilothouse.dev/simulated"}
    spec = {"persistentVolumeReclaimPolicy": "Delete", "claimRef": ref("c")}
    await world.volume_syncs.sync(world.volume("v", phase="Bound", annotations=made, **spec))
    assert ("persistentvolumes", "", "v") not in world.server.objects


@pytest.mark.parametrize(
    ("policy", "phase", "reason"),
    [
        ("Retain", "Released", None),
        ("Recycle", "Failed", "VolumeFailedRecycle"),
        ("Delete", "Failed", "VolumeFailedDelete"),
        ("Shred", "Failed", "VolumeUnknownReclaimPolicy"),
    ],
)
async def test_a_volume_without_its_claim_is_given_back(
    world: World, policy: str, phase: str, reason: str | None
) -> None:
    world.claim("c")
    spec = {"persistentVolumeReclaimPolicy": policy, "claimRef": ref("c", uid="of an older one")}
    await world.volume_syncs.sync(world.volume("v", phase="Bound", **spec))
    assert world.phase("persistentvolumes", "v") == phase
    assert [told[1] for told in world.server.told] == ([reason] if reason else [])


async def test_a_volume_that_is_bound_first_hastens_its_claim_if_it_is_of_its_mode(world: World) -> None:
    world.claim("c")
    await world.volume_syncs.sync(world.volume("v", claimRef=ref("c")))
    assert world.hastened == ["d/c"]
    await world.volume_syncs.sync(world.volume("w", claimRef=ref("c"), volumeMode="Block"))
    mismatch, why = "VolumeMismatch", "due to incompatible volumeMode."
    assert world.server.told == [
        ("w", mismatch, f'Cannot bind PersistentVolume to requested PersistentVolumeClaim "c" {why}'),
        ("c", mismatch, f'Cannot bind PersistentVolume "w" to requested PersistentVolumeClaim {why}'),
    ]


async def test_an_event_names_the_pods_to_be_scheduled_first(world: World) -> None:
    world.classes.add({"metadata": {"name": "later"}, "volumeBindingMode": "WaitForFirstConsumer"})
    for name, node in (("b", ""), ("a", ""), ("placed", "n")):
        volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
        world.pods.add({"metadata": {"namespace": "d", "name": name}, "spec": {"volumes": volumes, "nodeName": node}})
    await world.claim_syncs.sync(world.claim("c", storageClassName="later"))
    assert world.server.told == [("c", "WaitForPodScheduled", "waiting for pods a,b to be scheduled")]
    await world.claim_syncs.sync(world.claim("e", storageClassName="nosuch"))
    assert world.server.told[1:] == [("e", "ProvisioningFailed", 'storageclass.storage.k8s.io "nosuch" not found')]
