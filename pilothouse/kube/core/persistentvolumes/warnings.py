"""Warnings about persistent volumes: fields and sources that are deprecated."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.kube.validation.node_selectors import warnings_for_term
from pilothouse.machinery.field import root
from pilothouse.machinery.objects import Json, annotations_of, part

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
