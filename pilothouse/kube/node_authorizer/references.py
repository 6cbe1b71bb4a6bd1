"""What pods and volumes refer to by name, as far as a kubelet needs it to run them."""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.nested_fields import items, part, text
from pilothouse.machinery.objects import Json, metadata, name_of, namespace_of

MIRROR = "kubernetes.io/config.mirror"
_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_SECRETS_OF_VOLUMES = {
    "azureFile": ("secretName",),
    "cephfs": ("secretRef", "name"),
    "cinder": ("secretRef", "name"),
    "flexVolume": ("secretRef", "name"),
    "rbd": ("secretRef", "name"),
    "secret": ("secretName",),
    "scaleIO": ("secretRef", "name"),
    "iscsi": ("secretRef", "name"),
    "storageos": ("secretRef", "name"),
    "csi": ("nodePublishSecretRef", "name"),
}
"""Where a pod's volume names its secret."""
_IN_CLAIM_NAMESPACE = ("cephfs", "flexVolume", "rbd", "scaleIO", "iscsi")
"""Persistent volumes whose secrets are in the namespace of the claim where they say no other."""
_IN_OWN_NAMESPACE = ("cinder", "storageos")
_OF_NODES = ("nodePublishSecretRef", "nodeStageSecretRef", "nodeExpandSecretRef")
"""The secrets of a CSI volume that kubelets use, and not controllers."""


@dataclass(frozen=True, slots=True)
class Reference:
    resource: str
    namespace: str
    name: str


def is_mirror(pod: Json) -> bool:
    """Whether a kubelet runs it by itself and only shows it here."""
    return MIRROR in (metadata(pod).get("annotations") or {})


def references_of_pod(pod: Json) -> Iterator[Reference]:
    """May name a thing twice."""
    namespace, spec = namespace_of(pod), part(pod, "spec")
    found = {
        "serviceaccounts": [text(spec, "serviceAccountName")],
        "secrets": secret_names(spec),
        "configmaps": config_map_names(spec),
        "persistentvolumeclaims": (claim_name(pod, volume) for volume in items(spec, "volumes")),
        "resourceclaims": _resource_claims(pod),
    }
    for resource, names in found.items():
        yield from (Reference(resource, namespace, name) for name in names if name)


def secret_names(spec: Json) -> Iterator[str]:
    yield from (text(secret, "name") for secret in items(spec, "imagePullSecrets"))
    yield from _of_containers(spec, "secretRef", "secretKeyRef")
    for volume in items(spec, "volumes"):
        for source, path in _SECRETS_OF_VOLUMES.items():
            if source in volume:
                yield text(volume, source, *path)
        yield from (text(source, "secret", "name") for source in items(volume, "projected", "sources"))


def config_map_names(spec: Json) -> Iterator[str]:
    yield from _of_containers(spec, "configMapRef", "configMapKeyRef")
    for volume in items(spec, "volumes"):
        yield text(volume, "configMap", "name")
        yield from (text(source, "configMap", "name") for source in items(volume, "projected", "sources"))


def _of_containers(spec: Json, whole: str, key: str) -> Iterator[str]:
    for kind in _CONTAINERS:
        for container in items(spec, kind):
            yield from (text(source, whole, "name") for source in items(container, "envFrom"))
            yield from (text(variable, "valueFrom", key, "name") for variable in items(container, "env"))


def claim_name(pod: Json, volume: Json) -> str:
    """The claim behind a volume, if there is one; that of an ephemeral volume is named after the pod and the volume."""
    if "persistentVolumeClaim" in volume:
        return text(volume, "persistentVolumeClaim", "claimName")
    return f"{name_of(pod)}-{text(volume, 'name')}" if "ephemeral" in volume else ""


def _resource_claims(pod: Json) -> Iterator[str]:
    generated = {text(each, "name"): text(each, "resourceClaimName") for each in _claim_statuses(pod)}
    for claim in items(pod, "spec", "resourceClaims"):
        yield text(claim, "resourceClaimName") or generated.get(text(claim, "name"), "")
    yield text(pod, "status", "extendedResourceClaimStatus", "resourceClaimName")


def _claim_statuses(pod: Json) -> list[Json]:
    return items(pod, "status", "resourceClaimStatuses")


def secrets_of_volume(volume: Json) -> Iterator[Reference]:
    """Of a persistent volume, those that kubelets see."""
    spec = part(volume, "spec")
    claimed_from = text(spec, "claimRef", "namespace")
    if azure := spec.get("azureFile"):
        yield from _secret(text(azure, "secretNamespace") or claimed_from, text(azure, "secretName"))
    for source in _IN_CLAIM_NAMESPACE:
        secret = part(spec, source, "secretRef")
        yield from _secret(text(secret, "namespace") or claimed_from, text(secret, "name"))
    for source in _IN_OWN_NAMESPACE:
        secret = part(spec, source, "secretRef")
        yield from _secret(text(secret, "namespace"), text(secret, "name"))
    for reference in _OF_NODES:
        secret = part(spec, "csi", reference)
        yield from _secret(text(secret, "namespace"), text(secret, "name"))


def _secret(namespace: str, name: str) -> Iterator[Reference]:
    if name:
        yield Reference("secrets", namespace, name)
