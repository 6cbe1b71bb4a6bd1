"""The objects that a kubelet must read to run a pod: those that the pod and its persistent volumes refer to."""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.kinds.references import claim_names, config_map_names, resource_claim_names, secret_names
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, namespace_of, part, text

_IN_CLAIM_NAMESPACE = ("cephfs", "flexVolume", "rbd", "scaleIO", "iscsi")
"""Persistent volumes whose secrets are in the namespace of the claim where they say no other."""
_IN_OWN_NAMESPACE = ("cinder", "storageos")
_OF_NODES = ("nodePublishSecretRef", "nodeStageSecretRef", "nodeExpandSecretRef")
"""The secrets of a CSI volume that kubelets use, and not controllers."""


@dataclass(frozen=True, slots=True)
class ReferredObject:
    resource: str
    namespace: str
    name: str


def references_of_pod(pod: Json) -> Iterator[ReferredObject]:
    namespace, spec = namespace_of(pod), part(pod, "spec")
    found = {
        "serviceaccounts": {text(spec, "serviceAccountName")} - {""},
        "secrets": secret_names(spec),
        "configmaps": config_map_names(spec),
        "persistentvolumeclaims": claim_names(pod),
        "resourceclaims": resource_claim_names(pod),
    }
    for resource, names in found.items():
        yield from (ReferredObject(resource, namespace, name) for name in names)


def secrets_of_volume(volume: Json) -> Iterator[ReferredObject]:
    """Yield the secrets of a persistent volume that kubelets use, and not only controllers."""
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


def _secret(namespace: str, name: str) -> Iterator[ReferredObject]:
    if name:
        yield ReferredObject("secrets", namespace, name)
