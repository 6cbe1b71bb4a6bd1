"""Provisioning of volumes: delegated to external provisioners, or immediate for the simulated class."""

from __future__ import annotations

from pilothouse.client.events.event import NORMAL, WARNING, reference_to
from pilothouse.client.events.recorder import EventRecorder
from pilothouse.client.rest.client import Client
from pilothouse.controllers.resources import PERSISTENT_VOLUMES
from pilothouse.controllers.volume.persistentvolume import matching
from pilothouse.controllers.volume.persistentvolume.binding import Binding, Volumes
from pilothouse.machinery.errors import AlreadyExists
from pilothouse.machinery.objects import Json, annotations_of, name_of, uid_of

_IN_TREE = "kubernetes.io/"
_MIGRATED = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/azure-file": "file.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
    "kubernetes.io/vsphere-volume": "csi.vsphere.vmware.com",
}
"""CSI drivers that replace former in-tree plugins."""
DRIVER = "simulated.pilothouse.dev"
"""Driver name of simulated volumes; driver names must not contain a slash."""


class Provisioning:
    def __init__(self, client: Client, binding: Binding, volumes: Volumes, recorder: EventRecorder) -> None:
        self._client = client
        self._binding, self._volumes = binding, volumes
        self._recorder = recorder

    async def provision(self, claim: Json, storage_class: Json | None) -> None:
        """Provision a volume for the claim. Raises StatusError."""
        if storage_class is None:
            self._failed(claim, f'storageclass.storage.k8s.io "{matching.class_of_claim(claim)}" not found')
            return
        provisioner = storage_class["provisioner"]
        if provisioner == matching.SIMULATED:
            volumes, volume = self._client.for_resource(PERSISTENT_VOLUMES), new_volume(claim, storage_class)
            try:
                created = await volumes.create(volume)
                message = f"Successfully provisioned volume {name_of(created)} using {matching.SIMULATED}"
                self._recorder.event(claim, NORMAL, "ProvisioningSucceeded", message)
            except AlreadyExists:
                created = await volumes.get(name_of(volume))
            self._volumes.keep(created)
            await self._binding.bind(created, claim, **_provisioner_annotations(matching.SIMULATED))
        elif provisioner.startswith(_IN_TREE) and provisioner not in _MIGRATED:
            self._failed(claim, f"no volume plugin matched name: {provisioner}")
        else:
            await self._wait_for_others(claim, provisioner)

    def _failed(self, claim: Json, reason: str) -> None:
        self._recorder.event(claim, WARNING, "ProvisioningFailed", reason)

    async def _wait_for_others(self, claim: Json, provisioner: str) -> None:
        driver = _MIGRATED.get(provisioner, provisioner)
        if annotations_of(claim).get(matching.STORAGE_PROVISIONER) != driver:
            claim = await self._binding.write_claim(
                matching.with_annotations(claim, **_provisioner_annotations(driver))
            )
        message = (
            f"Waiting for a volume to be created either by the external provisioner '{driver}' or manually by the"
            " system administrator. If volume creation is delayed, please verify that the provisioner is running and"
            " correctly registered."
        )
        self._recorder.event(claim, NORMAL, "ExternalProvisioning", message)


def _provisioner_annotations(provisioner: str) -> dict[str, str]:
    return {matching.BETA_STORAGE_PROVISIONER: provisioner, matching.STORAGE_PROVISIONER: provisioner}


def new_volume(claim: Json, storage_class: Json) -> Json:
    """Return the simulated volume: with the requested size, and the topology allowed by the class."""
    name = f"pvc-{uid_of(claim)}"
    spec: Json = {
        "capacity": {"storage": str(matching.requested_size(claim))},
        "accessModes": claim["spec"].get("accessModes"),
        "volumeMode": matching.volume_mode(claim),
        "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy") or "Delete",
        "storageClassName": matching.class_of_claim(claim),
        "claimRef": reference_to(claim),
        "csi": {"driver": DRIVER, "volumeHandle": name},
    }
    if options := storage_class.get("mountOptions"):
        spec["mountOptions"] = options
    if wanted := matching.attributes_class(claim):
        spec["volumeAttributesClassName"] = wanted
    if terms := [*map(_node_selector_term, storage_class.get("allowedTopologies") or ())]:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    annotations = {matching.BOUND_BY_CONTROLLER: "yes", matching.PROVISIONED_BY: matching.SIMULATED}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": annotations},
        "spec": spec,
    }


def _node_selector_term(topology: Json) -> Json:
    expressions = topology.get("matchLabelExpressions") or ()
    return {
        "matchExpressions": [
            {"key": expression["key"], "operator": "In", "values": expression.get("values")}
            for expression in expressions
        ]
    }
