"""The rules of persistent volumes: the source never changes."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.apiserver.registry.carry_over import carry_over
from pilothouse.apiserver.server.features import enabled
from pilothouse.kube.core.persistentvolumes.sources import source_of
from pilothouse.kube.core.persistentvolumes.validation import (
    validate_affinity_unchanged,
    validate_attributes_class_kept,
    validate_source_unchanged,
    validate_volume_spec,
)
from pilothouse.kube.core.persistentvolumes.warnings import MOUNT_OPTIONS, warnings_for_volume
from pilothouse.kube.core.pods.defaults.resources import round_up
from pilothouse.kube.core.pods.defaults.volumes import default_volume
from pilothouse.kube.strategy import KubeStrategy
from pilothouse.kube.validation.node_selectors import has_invalid_values
from pilothouse.machinery.field import Errors, forbidden, required, root
from pilothouse.machinery.objects import Json, annotations_of, name_of, part, resource_version_of, text
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


class PersistentVolumeStrategy(KubeStrategy):
    namespaced = False
    reset_fields = ("status",)

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

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        carry_over(obj, old, "status")

    def validate(self, obj: Json) -> Errors:
        yield from self._validate_volume(obj, None)
        yield from _validate_mount_options(obj)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self._validate_volume(obj, old)
        yield from _validate_mount_options(obj)
        yield from self._validate_volume(obj, old)
        yield from validate_source_unchanged(obj["spec"], old["spec"])
        modes = obj["spec"].get("volumeMode"), old["spec"].get("volumeMode")
        yield from validate_immutable_field(*modes, root("volumeMode"))
        if old["spec"].get("nodeAffinity") is not None and not enabled("MutablePVNodeAffinity"):
            yield from validate_affinity_unchanged(obj["spec"].get("nodeAffinity"), old["spec"]["nodeAffinity"])
        yield from validate_attributes_class_kept(obj["spec"], old["spec"])

    def _validate_volume(self, obj: Json, old: Json | None) -> Errors:
        yield from self.validate_metadata(obj)
        stored = part(old, "spec", "nodeAffinity").get("required") if old else None
        allow = has_invalid_values(stored)
        yield from validate_volume_spec(obj["spec"], name_of(obj), root("spec"), allow_invalid_values=allow)

    def warnings_on_create(self, obj: Json) -> Iterable[str]:
        return warnings_for_volume(obj)

    def warnings_on_update(self, obj: Json, old: Json) -> Iterable[str]:
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
