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
