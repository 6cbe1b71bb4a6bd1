"""PersistentVolumes: strategies, warnings about deprecated fields, and columns. The source is immutable."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pilothouse.apiserver.endpoints.groups import ServedResource
from pilothouse.apiserver.registry.metadata import carry_over
from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.apiserver.server.features import enabled
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kube.core.persistentvolumes import validation
from pilothouse.kube.core.persistentvolumes.sources import source_of
from pilothouse.kube.core.pods.defaults.resources import round_up
from pilothouse.kube.core.pods.defaults.volumes import default_volume
from pilothouse.kube.registries import Registries
from pilothouse.kube.served import with_status
from pilothouse.kube.strategy import SeparateStatusStrategy
from pilothouse.kube.validation.selectors import has_invalid_values, warnings_for_term
from pilothouse.machinery.field import Errors, forbidden, required, root
from pilothouse.machinery.objects import Json, annotations_of, items, name_of, part, resource_version_of, text
from pilothouse.machinery.times import now
from pilothouse.machinery.validation.immutable import validate_immutable_field

_WITH_MOUNT_OPTIONS = (
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "nfs",
    "rbd",
    "quobyte",
    "iscsi",
    "cinder",
    "cephfs",
    "azureFile",
    "vsphereVolume",
    "azureDisk",
    "photonPersistentDisk",
)


class PersistentVolumeStrategy(SeparateStatusStrategy):
    namespaced = False
    repeats_warnings_on_update = True

    def default(self, obj: Json) -> None:
        spec = obj["spec"]
        obj["status"]["phase"] = text(obj, "status", "phase") or "Pending"
        spec["persistentVolumeReclaimPolicy"] = text(spec, "persistentVolumeReclaimPolicy") or "Retain"
        if spec.get("volumeMode") is None:
            spec["volumeMode"] = "Filesystem"
        round_up(spec.get("capacity"))
        default_volume(source_of(spec))

    def prepare_for_create(self, obj: Json) -> None:
        obj["status"] = {"phase": "Pending", "lastPhaseTransitionTime": now()}

    def validate(self, obj: Json) -> Errors:
        yield from self._validate_volume(obj, None)
        yield from _validate_mount_options(obj)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self._validate_volume(obj, old)
        yield from _validate_mount_options(obj)
        yield from self._validate_volume(obj, old)
        yield from validation.validate_source_unchanged(obj["spec"], old["spec"])
        modes = obj["spec"].get("volumeMode"), old["spec"].get("volumeMode")
        yield from validate_immutable_field(*modes, root("volumeMode"))
        if old["spec"].get("nodeAffinity") is not None and not enabled("MutablePVNodeAffinity"):
            yield from validation.validate_affinity_unchanged(
                obj["spec"].get("nodeAffinity"), old["spec"]["nodeAffinity"]
            )
        yield from validation.validate_attributes_class_kept(obj["spec"], old["spec"])

    def _validate_volume(self, obj: Json, old: Json | None) -> Errors:
        yield from self.validate_metadata(obj)
        stored = part(old, "spec", "nodeAffinity").get("required") if old else None
        allow = has_invalid_values(stored)
        yield from validation.validate_volume_spec(obj["spec"], name_of(obj), root("spec"), allow_invalid_values=allow)

    def warnings_on_create(self, obj: Json) -> Iterable[str]:
        return warnings_for_volume(obj)


class PersistentVolumeStatusStrategy(PersistentVolumeStrategy):
    reset_fields = ("spec",)

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        carry_over(obj, old, "spec")
        status, before = obj["status"], part(old, "status")
        changed, moment = status.get("lastPhaseTransitionTime"), before.get("lastPhaseTransitionTime")
        if text(status, "phase") != text(before, "phase"):
            if changed is None or changed == moment:
                status["lastPhaseTransitionTime"] = now()
        elif changed is None and moment is not None:
            status["lastPhaseTransitionTime"] = moment

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        if not resource_version_of(obj):
            yield required(root("resourceVersion"))

    def warnings_on_update(self, obj: Json, old: Json) -> Iterable[str]:
        return ()


def _validate_mount_options(obj: Json) -> Errors:
    if MOUNT_OPTIONS in annotations_of(obj) and not any(obj["spec"].get(name) for name in _WITH_MOUNT_OPTIONS):
        path = root("metadata", "annotations", MOUNT_OPTIONS)
        yield forbidden(path, "may not specify mount options for this volume type")


BETA_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
BETA_STORAGE_CLASS_DEPRECATED = 'deprecated since v1.8; use "storageClassName" attribute instead'
MOUNT_OPTIONS = "volume.beta.kubernetes.io/mount-options"

_DEPRECATED_ANNOTATIONS = {
    BETA_STORAGE_CLASS: BETA_STORAGE_CLASS_DEPRECATED,
    MOUNT_OPTIONS: 'deprecated since v1.31; use "mountOptions" attribute instead',
}
_DEPRECATED_SOURCES = {
    "cephfs": "cephfs: deprecated in v1.28, non-functional in v1.31+",
    "photonPersistentDisk": "photonPersistentDisk: deprecated in v1.11, non-functional in v1.16+",
    "scaleIO": "scaleIO: deprecated in v1.16, non-functional in v1.22+",
    "storageos": "storageOS: deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "glusterfs: deprecated in v1.25, non-functional in v1.26+",
    "rbd": "rbd: deprecated in v1.28, non-functional in v1.31+",
}


def warnings_for_volume(obj: Json) -> Iterable[str]:
    spec = obj["spec"]
    for name, message in _DEPRECATED_ANNOTATIONS.items():
        if name in annotations_of(obj):
            yield f"metadata.annotations[{name}]: {message}"
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        yield (
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. "
            "Instead, the recommended approach is to use dynamic provisioning."
        )
    path = root("spec", "nodeAffinity", "required", "nodeSelectorTerms")
    for position, term in enumerate(part(spec, "nodeAffinity", "required").get("nodeSelectorTerms") or ()):
        yield from warnings_for_term(term, path.index(position))
    for name, message in _DEPRECATED_SOURCES.items():
        if spec.get(name) is not None:
            yield f"spec.{message}"


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
    """Return the storage class of a volume or a claim. The older annotation takes precedence over the field."""
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
