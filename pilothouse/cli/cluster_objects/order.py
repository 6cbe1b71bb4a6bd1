"""In which order objects are made, so that each finds what it needs."""

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
"""What could refuse the others."""
_BEATS: Final = ("Event", "Lease")
"""What tells of a moment that is over."""
_OF_THE_SERVER: Final = ("Service", "Endpoints", "EndpointSlice", "ServiceCIDR")
"""Kinds of which every server keeps one for itself."""


def in_order(objects: Sequence[Json]) -> list[Json]:
    """Those that others need first, owners before what they own, those that could refuse others last."""
    by_uid = {uid: obj for obj in objects if (uid := metadata(obj).get("uid"))}
    return sorted(objects, key=lambda obj: (_rank(obj), _depth(obj, by_uid, frozenset())))


def is_made_by_the_cluster(obj: Json) -> bool:
    """Whether every cluster has its own of it, so that another one's is of no use."""
    if obj["kind"] in _BEATS or labels_of(obj).get("kube-aggregator.kubernetes.io/automanaged"):
        return True
    if annotations_of(obj).get("apf.kubernetes.io/autoupdate-spec") == "true":
        return True
    if obj["kind"] == "IPAddress" or name_of(obj) == "kube-root-ca.crt":
        return True
    return obj["kind"] in _OF_THE_SERVER and name_of(obj) == "kubernetes" and namespace_of(obj) in ("", "default")


def _rank(obj: Json) -> int:
    if obj["kind"] in _FIRST:
        return _FIRST.index(obj["kind"])
    if obj["kind"] in _LAST:
        return len(_FIRST) + 1 + _LAST.index(obj["kind"])
    return len(_FIRST)


def _depth(obj: Json, by_uid: Mapping[str, Json], above: frozenset[str]) -> int:
    """Return how many owners stand above the object. Nobody owns what owns them."""
    owners = {owner["uid"] for owner in metadata(obj).get("ownerReferences") or ()} & by_uid.keys() - above
    return max((1 + _depth(by_uid[uid], by_uid, above | owners) for uid in owners), default=0)
