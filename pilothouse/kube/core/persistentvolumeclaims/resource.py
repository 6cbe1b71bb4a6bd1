"""PersistentVolumeClaims as a resource: names and columns."""

from __future__ import annotations

from pilothouse.apiserver.endpoints.groups import ServedResource
from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.kube.core.persistentvolumeclaims.strategy import (
    PersistentVolumeClaimStatusStrategy,
    PersistentVolumeClaimStrategy,
)
from pilothouse.kube.core.persistentvolumes.resource import (
    access_modes,
    attributes_class,
    phase,
    storage_class,
    volume_mode,
)
from pilothouse.kube.registries import Registries
from pilothouse.kube.served import with_status
from pilothouse.machinery.objects import Json, items, text

_SPEC = "io.k8s.api.core.v1.PersistentVolumeClaimSpec"
_STATUS = "io.k8s.api.core.v1.PersistentVolumeClaimStatus"


def _capacity(obj: Json) -> str:
    """Return the capacity as it is shown, nothing before the claim has a volume."""
    return (text(obj, "status", "capacity", "storage") or "0") if text(obj, "spec", "volumeName") else ""


def _access_modes(obj: Json) -> str:
    return access_modes(items(obj, "status", "accessModes")) if text(obj, "spec", "volumeName") else ""


PERSISTENT_VOLUME_CLAIMS = Resource(
    names=Names("persistentvolumeclaims", kind="PersistentVolumeClaim", short=["pvc"]),
    strategy=PersistentVolumeClaimStrategy(),
    returns_deleted_object=True,
    columns=[
        NAME,
        Column("Status", phase, documented=(_STATUS, "phase")),
        Column("Volume", lambda obj: text(obj, "spec", "volumeName"), documented=(_SPEC, "volumeName")),
        Column("Capacity", _capacity, documented=(_STATUS, "capacity")),
        Column("Access Modes", _access_modes, documented=(_STATUS, "accessModes")),
        Column("StorageClass", storage_class, description="StorageClass of the pvc"),
        Column("VolumeAttributesClass", attributes_class, description="VolumeAttributesClass of the pvc"),
        AGE,
        Column("VolumeMode", volume_mode, priority=1, documented=(_SPEC, "volumeMode")),
    ],
)


def persistent_volume_claim_storages(registries: Registries) -> list[ServedResource]:
    return with_status(registries.open(PERSISTENT_VOLUME_CLAIMS), PersistentVolumeClaimStatusStrategy())
