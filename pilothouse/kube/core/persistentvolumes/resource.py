"""PersistentVolumes as a resource: names and columns."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.apiserver.endpoints.groups import ServedResource
from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kube.core.persistentvolumes.strategy import PersistentVolumeStatusStrategy, PersistentVolumeStrategy
from pilothouse.kube.core.persistentvolumes.warnings import BETA_STORAGE_CLASS
from pilothouse.kube.registries import Registries
from pilothouse.kube.served import with_status
from pilothouse.machinery.objects import Json, annotations_of, items, part, text

_SPEC = "io.k8s.api.core.v1.PersistentVolumeSpec"
_STATUS = "io.k8s.api.core.v1.PersistentVolumeStatus"
_SHORT_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def access_modes(modes: Sequence[str]) -> str:
    return ",".join(short for mode, short in _SHORT_MODES.items() if mode in modes)


def phase(obj: Json) -> str:
    return "Terminating" if is_deleting(obj) else text(obj, "status", "phase")


def storage_class(obj: Json) -> str:
    """The class of a volume or of a claim. The annotation is older than the field, and goes first."""
    return annotations_of(obj).get(BETA_STORAGE_CLASS) or text(obj, "spec", "storageClassName")


def attributes_class(obj: Json) -> str:
    name = part(obj, "spec").get("volumeAttributesClassName")
    return "<unset>" if name is None else str(name)


def volume_mode(obj: Json) -> str:
    return text(obj, "spec", "volumeMode") or "<unset>"


def _claim(obj: Json) -> str:
    claim = part(obj, "spec").get("claimRef")
    return "" if claim is None else f"{claim.get('namespace') or ''}/{claim.get('name') or ''}"


PERSISTENT_VOLUMES = Resource(
    names=Names("persistentvolumes", kind="PersistentVolume", short=["pv"]),
    strategy=PersistentVolumeStrategy(),
    returns_deleted_object=True,
    columns=[
        NAME,
        Column("Capacity", lambda obj: text(obj, "spec", "capacity", "storage") or "0", documented=(_SPEC, "capacity")),
        Column(
            "Access Modes",
            lambda obj: access_modes(items(obj, "spec", "accessModes")),
            documented=(_SPEC, "accessModes"),
        ),
        Column(
            "Reclaim Policy",
            lambda obj: text(obj, "spec", "persistentVolumeReclaimPolicy"),
            documented=(_SPEC, "persistentVolumeReclaimPolicy"),
        ),
        Column("Status", phase, documented=(_STATUS, "phase")),
        Column("Claim", _claim, documented=(_SPEC, "claimRef")),
        Column("StorageClass", storage_class, description="StorageClass of the pv"),
        Column("VolumeAttributesClass", attributes_class, description="VolumeAttributesClass of the pv"),
        Column("Reason", lambda obj: text(obj, "status", "reason"), documented=(_STATUS, "reason")),
        AGE,
        Column("VolumeMode", volume_mode, priority=1, documented=(_SPEC, "volumeMode")),
    ],
)


def persistent_volume_storages(registries: Registries) -> list[ServedResource]:
    return with_status(registries.open(PERSISTENT_VOLUMES), PersistentVolumeStatusStrategy())
