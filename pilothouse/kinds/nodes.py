"""Nodes: readiness, taints, and what the kubelet and the scheduler read from a node."""

from __future__ import annotations

from typing import TypeAlias

from pilothouse.kinds.conditions import is_true
from pilothouse.machinery.objects import Json

TaintIdentity: TypeAlias = tuple[str, str]
"""(key, effect): the identity of a taint. A node has at most one taint of each."""


def is_ready(node: Json) -> bool:
    """Whether the node's Ready condition is True."""
    return is_true(node, "Ready")


def is_unschedulable(node: Json) -> bool:
    """Whether the node is cordoned."""
    return bool((node.get("spec") or {}).get("unschedulable"))


def taints_of(node: Json) -> list[Json]:
    """Return `spec.taints`; empty if there are none."""
    return (node.get("spec") or {}).get("taints") or []


def taint_identity(taint: Json) -> TaintIdentity:
    return taint.get("key") or "", taint.get("effect") or ""


def has_taint(node: Json, identity: TaintIdentity) -> bool:
    return any(taint_identity(taint) == identity for taint in taints_of(node))


def has_taint_key(node: Json, key: str) -> bool:
    """Whether the node has a taint with the key, whatever its effect."""
    return any(taint.get("key") == key for taint in taints_of(node))


DECLARABLE_FEATURES = (
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
    "RestartAllContainersOnContainerExits",
    "UserNamespacesHostNetworkSupport",
)
"""Features of pods that kubelets declare, named as their gates, sorted."""


def declared_features(node: Json) -> frozenset[str]:
    return frozenset((node.get("status") or {}).get("declaredFeatures") or ())


def features_of_pod(spec: Json) -> frozenset[str]:
    """Return the features that a node must declare to run the pod."""
    features = set()
    for kind in ("containers", "initContainers"):
        for container in spec.get(kind) or ():
            for rule in container.get("restartPolicyRules") or ():
                if rule.get("action") == "RestartAllContainers":
                    features.add("RestartAllContainersOnContainerExits")
    if spec.get("hostNetwork") and spec.get("hostUsers") is False:
        features.add("UserNamespacesHostNetworkSupport")
    return frozenset(features)


def features_of_update(spec: Json, old: Json) -> frozenset[str]:
    """Return the features that the node of a pod must declare for a change of the pod's spec."""
    features = set()
    if (spec.get("resources") or None) != (old.get("resources") or None):
        features.add("InPlacePodLevelResourcesVerticalScaling")
    for container, before in zip(spec.get("initContainers") or (), old.get("initContainers") or (), strict=False):
        resized = (container.get("resources") or None) != (before.get("resources") or None)
        if resized and before.get("restartPolicy") != "Always":
            features.add("InPlacePodVerticalScalingInitContainers")
    return frozenset(features)
