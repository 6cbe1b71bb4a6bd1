"""The graph of access from nodes to objects.

    pod → its node, for the pod and all its references
    persistent volume → its claim → the nodes of the pods with the claim
    secret → the volumes with the secret → their claims → …

Lookups use an index, independent of the number of referring pods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from pilothouse.kinds.references import claim_names, config_map_names, resource_claim_names, secret_names
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, namespace_of, part, text


@dataclass(frozen=True, slots=True)
class _Placed:
    node: str
    related: frozenset[ReferredObject]


@dataclass(frozen=True, slots=True)
class _Volume:
    claim: ReferredObject
    secrets: frozenset[ReferredObject]


class NodeGraph:
    """Initially empty; NodeGraphFeed fills it."""

    _placed: dict[ReferredObject, _Placed]  # owners per node
    _nodes: dict[ReferredObject, Counter[str]]  # reference counts per node and object
    _volumes: dict[str, _Volume]
    _volumes_of_secret: dict[ReferredObject, set[str]]  # every name here is in _volumes

    def __init__(self) -> None:
        self._placed, self._nodes, self._volumes, self._volumes_of_secret = {}, {}, {}, {}

    def is_related(self, node: str, reference: ReferredObject) -> bool:
        if node in self._nodes.get(reference, ()):
            return True
        if reference.resource == "persistentvolumes":
            return self._uses_volume(node, reference.name)
        return any(self._uses_volume(node, volume) for volume in self._volumes_of_secret.get(reference, ()))

    def _uses_volume(self, node: str, name: str) -> bool:
        volume = self._volumes.get(name)
        return volume is not None and node in self._nodes.get(volume.claim, ())

    def place(self, owner: ReferredObject, node: str, references: Iterable[ReferredObject] = ()) -> None:
        """Place `owner` and its references on the node. An empty node removes them."""
        self.drop(owner)
        if node:
            placed = self._placed[owner] = _Placed(node, frozenset((owner, *references)))
            for related in placed.related:
                self._nodes.setdefault(related, Counter())[node] += 1

    def drop(self, owner: ReferredObject) -> None:
        placed = self._placed.pop(owner, None)
        if placed is not None:
            for related in placed.related:
                node = placed.node
                nodes = self._nodes[related]
                nodes[node] -= 1
                if not nodes[node]:
                    del nodes[node]
                if not nodes:
                    del self._nodes[related]

    def put_volume(self, name: str, claim: ReferredObject, secrets: Iterable[ReferredObject]) -> None:
        self.drop_volume(name)
        volume = self._volumes[name] = _Volume(claim, frozenset(secrets))
        for secret in volume.secrets:
            self._volumes_of_secret.setdefault(secret, set()).add(name)

    def drop_volume(self, name: str) -> None:
        volume = self._volumes.pop(name, None)
        for secret in volume.secrets if volume else ():
            self._volumes_of_secret[secret].discard(name)
            if not self._volumes_of_secret[secret]:
                del self._volumes_of_secret[secret]


_IN_CLAIM_NAMESPACE = ("cephfs", "flexVolume", "rbd", "scaleIO", "iscsi")
"""Volume sources whose secret namespace defaults to the claim's namespace."""

_IN_OWN_NAMESPACE = ("cinder", "storageos")

_OF_NODES = ("nodePublishSecretRef", "nodeStageSecretRef", "nodeExpandSecretRef")
"""CSI secrets for kubelets; other CSI secrets are for controllers."""


@dataclass(frozen=True, slots=True)
class ReferredObject:
    resource: str
    namespace: str
    name: str


def references_of_pod(pod: Json) -> Iterator[ReferredObject]:
    namespace, spec = namespace_of(pod), part(pod, "spec")
    result = {
        "serviceaccounts": {text(spec, "serviceAccountName")} - {""},
        "secrets": secret_names(spec),
        "configmaps": config_map_names(spec),
        "persistentvolumeclaims": claim_names(pod),
        "resourceclaims": resource_claim_names(pod),
    }
    for resource, names in result.items():
        yield from (ReferredObject(resource, namespace, name) for name in names)


def secrets_of_volume(volume: Json) -> Iterator[ReferredObject]:
    """Yield the secrets of a persistent volume for kubelets."""
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
