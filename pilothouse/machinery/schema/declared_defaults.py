"""Defaults that Go's types declare (`+default=`). They are documentation: each kind's strategy fills in its own."""

from __future__ import annotations

from typing import Any

_CORE = "io.k8s.api.core.v1"

DECLARED_DEFAULTS: dict[str, Any] = {
    "io.k8s.api.autoscaling.v1.ScaleSpec.replicas": 0,
    "io.k8s.api.certificates.v1beta1.PodCertificateRequestSpec.maxExpirationSeconds": 86400,
    f"{_CORE}.AzureDiskVolumeSource.cachingMode": "ReadWrite",
    f"{_CORE}.AzureDiskVolumeSource.fsType": "ext4",
    f"{_CORE}.AzureDiskVolumeSource.kind": "Shared",
    f"{_CORE}.AzureDiskVolumeSource.readOnly": False,
    f"{_CORE}.ContainerPort.protocol": "TCP",
    f"{_CORE}.FileKeySelector.optional": False,
    f"{_CORE}.GRPCAction.service": "",
    f"{_CORE}.ISCSIPersistentVolumeSource.iscsiInterface": "default",
    f"{_CORE}.ISCSIVolumeSource.iscsiInterface": "default",
    f"{_CORE}.LocalObjectReference.name": "",
    f"{_CORE}.RBDPersistentVolumeSource.keyring": "/etc/ceph/keyring",
    f"{_CORE}.RBDPersistentVolumeSource.pool": "rbd",
    f"{_CORE}.RBDPersistentVolumeSource.user": "admin",
    f"{_CORE}.RBDVolumeSource.keyring": "/etc/ceph/keyring",
    f"{_CORE}.RBDVolumeSource.pool": "rbd",
    f"{_CORE}.RBDVolumeSource.user": "admin",
    f"{_CORE}.ReplicationControllerSpec.minReadySeconds": 0,
    f"{_CORE}.ReplicationControllerSpec.replicas": 1,
    f"{_CORE}.ScaleIOPersistentVolumeSource.fsType": "xfs",
    f"{_CORE}.ScaleIOPersistentVolumeSource.storageMode": "ThinProvisioned",
    f"{_CORE}.ScaleIOVolumeSource.fsType": "xfs",
    f"{_CORE}.ScaleIOVolumeSource.storageMode": "ThinProvisioned",
    f"{_CORE}.ServicePort.protocol": "TCP",
    "io.k8s.api.resource.v1.DeviceToleration.operator": "Equal",
    "io.k8s.api.resource.v1alpha3.ResourcePoolStatusRequestSpec.limit": 100,
    "io.k8s.api.resource.v1beta1.DeviceToleration.operator": "Equal",
    "io.k8s.api.resource.v1beta2.DeviceToleration.operator": "Equal",
    "io.k8s.api.scheduling.v1alpha2.PodGroupSpec.disruptionMode": "Pod",
}
"""By definition and field."""
