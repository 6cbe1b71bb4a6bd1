"""Rules for pods written by kubelets: mirror pods, and status and eviction of pods on their node.

Mirror pods must not refer to API objects.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from pilothouse.apiserver.admission.interface import Attributes, Operation, refused
from pilothouse.kinds.pods import MIRROR_POD, is_mirror_pod
from pilothouse.kinds.references import config_map_names, secret_names
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json, items, metadata, name_of, part, text, uid_of
from pilothouse.machinery.validation.immutable import semantically_equal

Get: TypeAlias = Callable[[str, str], Awaitable[Json | None]]
"""By name and namespace."""

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


class NodePods:
    def __init__(self, *, pods: Get, nodes: Get) -> None:
        self._pods = pods
        self._nodes = nodes

    async def admit(self, node: str, attributes: Attributes) -> None:
        """Raises Forbidden, NotFound."""
        if attributes.subresource == "status":
            if attributes.operation is not Operation.UPDATE:
                raise refused(attributes, f"unexpected operation {quote(attributes.operation.value)}")
            new, old = attributes.obj or {}, attributes.old or {}
            if text(old, "spec", "nodeName") != node:
                reason = "can only update pod status for pods with spec.nodeName set to itself"
                raise refused(attributes, f"node {quote(node)} {reason}")
            if (metadata(new).get("labels") or {}) != (metadata(old).get("labels") or {}):
                raise refused(attributes, f"node {quote(node)} cannot update labels through pod status")
            for field, label in (
                ("resourceClaimStatuses", "resource claim statues"),
                ("extendedResourceClaimStatus", "extended resource claim status"),
            ):
                if not semantically_equal(part(new, "status").get(field), part(old, "status").get(field)):
                    raise refused(attributes, f"node {quote(node)} cannot update {label}")
        elif attributes.subresource == "eviction":
            await self._admit_eviction(node, attributes)
        elif attributes.subresource:
            only = "only 'status' and 'eviction' are allowed"
            raise refused(attributes, f"unexpected pod subresource {quote(attributes.subresource)}, {only}")
        else:
            if attributes.operation is Operation.CREATE:
                await self._admit_mirror(node, attributes, attributes.obj or {})
            elif attributes.operation is Operation.DELETE:
                pod = await existing(self._pods, "pod", attributes.name, attributes.namespace)
                if text(pod, "spec", "nodeName") != node:
                    raise refused(
                        attributes, f"node {quote(node)} can only delete pods with spec.nodeName set to itself"
                    )
            else:
                unexpected = f"unexpected operation {quote(attributes.operation.value)}"
                raise refused(attributes, f"{unexpected}, node {quote(node)} can only create and delete mirror pods")

    async def _admit_mirror(self, node: str, attributes: Attributes, pod: Json) -> None:
        if not is_mirror_pod(pod):
            without = f"pod does not have {quote(MIRROR_POD)} annotation"
            raise refused(attributes, f"{without}, node {quote(node)} can only create mirror pods")
        if text(pod, "spec", "nodeName") != node:
            raise refused(attributes, f"node {quote(node)} can only create pods with spec.nodeName set to itself")
        owners = items(pod, "metadata", "ownerReferences")
        if reason := _owner_problem(node, owners):
            raise refused(attributes, f"node {quote(node)} {reason}")
        uid = uid_of(await existing(self._nodes, "node", node))
        if (claimed := text(owners[0], "uid")) != uid:
            raise refused(attributes, f"node {node} UID mismatch: expected {claimed} got {uid}")
        try:
            resource = api_reference(part(pod, "spec"))
        except UnknownSource as error:
            raise refused(attributes, f"error checking mirror pod for API references: {error}") from None
        if resource:
            raise refused(attributes, f"node {quote(node)} can not create pods that reference {resource}")

    async def _admit_eviction(self, node: str, attributes: Attributes) -> None:
        if attributes.operation is not Operation.CREATE:
            raise refused(attributes, f"unexpected operation {attributes.operation.value}")
        name = attributes.name or name_of(attributes.obj or {})
        if not name:
            raise refused(attributes, "could not determine pod from request data")
        pod = await existing(self._pods, "pod", name, attributes.namespace)
        if text(pod, "spec", "nodeName") != node:
            raise refused(attributes, f"node {node} can only evict pods with spec.nodeName set to itself")


async def existing(get: Get, kind: str, name: str, namespace: str = "") -> Json:
    """Raises NotFound."""
    result = await get(name, namespace)
    if result is None:
        raise NotFound.of(GroupResource("", kind), name)
    return result


def _owner_problem(node: str, owners: list[Json]) -> str:
    if len(owners) > 1:
        return "can only create pods with a single owner reference set to itself"
    owner = owners[0] if owners else {}
    if (text(owner, "apiVersion"), text(owner, "kind"), text(owner, "name")) != ("v1", "Node", node):
        return "can only create pods with an owner reference set to itself"
    if not owner.get("controller"):
        return "can only create pods with a controller owner reference set to itself"
    return "must not set blockOwnerDeletion on an owner reference" if owner.get("blockOwnerDeletion") else ""


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
