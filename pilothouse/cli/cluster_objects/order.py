"""Creation order of objects: dependencies first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pilothouse.machinery.objects import Json, annotations_of, labels_of, metadata, name_of, namespace_of

_FIRST: Final = (
    "Namespace",
    "CustomResourceDefinition",
    "PriorityClass",
    "RuntimeClass",
    "StorageClass",
    "ServiceAccount",
    "ClusterRole",
    "Role",
    "ClusterRoleBinding",
    "RoleBinding",
    "LimitRange",
    "Secret",
    "ConfigMap",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Node",
    "Service",
)
_LAST: Final = (
    "APIService",
    "ResourceQuota",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
)
"""Kinds that can reject other objects."""
_EPHEMERAL: Final = ("Event", "Lease")
"""Kinds of short-lived objects."""
_SERVER_KINDS: Final = ("Service", "Endpoints", "EndpointSlice", "ServiceCIDR")
"""Kinds with an object that every server maintains for itself."""


def creation_order(objects: Sequence[Json]) -> list[Json]:
    """Sort objects: dependencies first, owners before dependents, admission objects last."""
    by_uid = {uid: obj for obj in objects if (uid := metadata(obj).get("uid"))}
    return sorted(objects, key=lambda obj: (_rank(obj), _depth(obj, by_uid, frozenset())))


def is_cluster_managed(obj: Json) -> bool:
    """Whether every cluster creates its own copy of the object."""
    if obj["kind"] in _EPHEMERAL or labels_of(obj).get("kube-aggregator.kubernetes.io/automanaged"):
        return True
    if annotations_of(obj).get("apf.kubernetes.io/autoupdate-spec") == "true":
        return True
    if obj["kind"] == "IPAddress" or name_of(obj) == "kube-root-ca.crt":
        return True
    return obj["kind"] in _SERVER_KINDS and name_of(obj) == "kubernetes" and namespace_of(obj) in ("", "default")


def _rank(obj: Json) -> int:
    if obj["kind"] in _FIRST:
        return _FIRST.index(obj["kind"])
    if obj["kind"] in _LAST:
        return len(_FIRST) + 1 + _LAST.index(obj["kind"])
    return len(_FIRST)


def _depth(obj: Json, by_uid: Mapping[str, Json], above: frozenset[str]) -> int:
    """Return the length of the longest owner chain above the object. Cycles are cut."""
    owners = {owner["uid"] for owner in metadata(obj).get("ownerReferences") or ()} & by_uid.keys() - above
    return max((1 + _depth(by_uid[uid], by_uid, above | owners) for uid in owners), default=0)
