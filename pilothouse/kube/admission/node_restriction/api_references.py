"""References of a pod to API objects, which mirror pods must not have."""

from __future__ import annotations

from pilothouse.kinds.references import config_map_names, secret_names
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json, items, text

_VOLUMES = {
    "configMap": "configmaps (via configmap volumes)",
    "secret": "secrets (via secret volumes)",
    "csi": "csidrivers (via CSI volumes)",
    "glusterfs": "endpoints (via glusterFS volumes)",
    "persistentVolumeClaim": "persistentvolumeclaims",
    "ephemeral": "persistentvolumeclaims (via ephemeral volumes)",
    "azureFile": "secrets (via azureFile volumes)",
}
_PROJECTED = {
    "configMap": "configmaps (via projected volumes)",
    "secret": "secrets (via projected volumes)",
    "serviceAccountToken": "serviceaccounts (via projected volumes)",
    "clusterTrustBundle": "clustertrustbundles",
    "podCertificate": "podcertificates",
}
_HARMLESS = frozenset({
    "awsElasticBlockStore", "azureDisk", "cephfs", "cinder", "downwardAPI", "emptyDir", "fc", "flexVolume", "flocker",
    "gcePersistentDisk", "gitRepo", "hostPath", "image", "iscsi", "nfs", "photonPersistentDisk", "portworxVolume",
    "quobyte", "rbd", "scaleIO", "storageos", "vsphereVolume",
})  # fmt: skip


class UnknownSource(ValueError):
    """Unknown kind of volume source."""


def api_reference(spec: Json) -> str:
    """Return the first resource referenced by the pod, or an empty string. Raise UnknownSource."""
    if text(spec, "serviceAccountName"):
        return "serviceaccounts"
    if secret_names(spec):
        return "secrets"
    if config_map_names(spec):
        return "configmaps"
    if items(spec, "resourceClaims"):
        return "resourceclaims"
    return next(filter(None, map(_of_volume, items(spec, "volumes"))), "")


def _of_volume(volume: Json) -> str:
    if not _HARMLESS.isdisjoint(volume):
        return ""
    if "projected" in volume:
        return next(
            filter(None, (_of_projection(volume, source) for source in items(volume, "projected", "sources"))), ""
        )
    result = next((what for source, what in _VOLUMES.items() if source in volume), "")
    if not result:
        raise UnknownSource(f"unknown volume type for volume  {quote(text(volume, 'name'))}")
    return result


def _of_projection(volume: Json, source: Json) -> str:
    result = next((what for kind, what in _PROJECTED.items() if kind in source), "")
    if not result and "downwardAPI" not in source:
        raise UnknownSource(f"unknown source for projected volume {quote(text(volume, 'name'))}")
    return result
