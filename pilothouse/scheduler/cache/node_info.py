"""A node with its pods and the sums over the pods.

Every added or removed pod updates the sums incrementally.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pilothouse.machinery.objects import Json, labels_of
from pilothouse.scheduler.cache.pod_info import CPU, MEMORY, PODS, Amounts, PodInfo, read_amounts

_MOST_REMEMBERED = 256
_COUNTED = (CPU, MEMORY)


class NodeInfo:
    """`node` is None if pods are bound to a node that is unknown or deleted."""

    pods: dict[str, PodInfo]  # by uid
    with_affinity: dict[str, PodInfo]  # subset of `pods` with inter-pod affinity
    with_required_anti_affinity: dict[str, PodInfo]
    claims: dict[str, int]  # volume claim → number of `pods` that use the claim, > 0
    memo: dict[str, Any]
    """Memoized plugin answers; valid until a pod comes or goes, or the node changes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.node: Json | None = None
        self.labels: Mapping[str, str] = {}
        self.taints: tuple[Json, ...] = ()
        self.is_unschedulable = False
        self.allocatable: Amounts = {}
        self.allowed_pods = 0
        self.images: dict[str, int] = {}
        self.requested: Amounts = {}
        self.counted: Amounts = {CPU: 0, MEMORY: 0}
        self.ports: dict[tuple[str, int], dict[str, int]] = {}
        self.pods, self.with_affinity, self.with_required_anti_affinity = {}, {}, {}
        self.claims, self.memo = {}, {}

    def __repr__(self) -> str:
        return f"NodeInfo({self.name})"

    def copy(self) -> NodeInfo:
        """Return a copy for simulations: adding and removing pods does not affect the original."""
        other = object.__new__(NodeInfo)
        other.__dict__ |= self.__dict__
        other.pods, other.with_affinity = dict(self.pods), dict(self.with_affinity)
        other.with_required_anti_affinity = dict(self.with_required_anti_affinity)
        other.requested, other.counted, other.claims = dict(self.requested), dict(self.counted), dict(self.claims)
        other.ports = {port: dict(addresses) for port, addresses in self.ports.items()}
        other.memo = {}
        return other

    def set_node(self, node: Json) -> None:
        spec, status = node.get("spec") or {}, node.get("status") or {}
        self.node, self.labels = node, labels_of(node)
        self.taints = tuple(spec.get("taints") or ())
        self.is_unschedulable = bool(spec.get("unschedulable"))
        self.allocatable = read_amounts(status.get("allocatable"))
        self.allowed_pods = self.allocatable.pop(PODS, 0)
        self.images = {
            name: image.get("sizeBytes") or 0 for image in status.get("images") or () for name in image["names"] or ()
        }
        self.memo = {}

    def remove_node(self) -> None:
        self.node = None
        self.memo = {}

    def add_pod(self, pod: PodInfo) -> None:
        """Add a pod. The pod must not be on the node yet."""
        self._count(pod, 1)
        self.pods[pod.uid] = pod
        if pod.spec.get("affinity"):
            affinity = pod.affinity
            if affinity.required or affinity.required_anti or affinity.has_preferences:
                self.with_affinity[pod.uid] = pod
            if affinity.required_anti:
                self.with_required_anti_affinity[pod.uid] = pod

    def remove_pod(self, uid: str) -> PodInfo:
        """Remove and return the pod. Raises KeyError if the pod is not on the node."""
        pod = self.pods.pop(uid)
        self.with_affinity.pop(uid, None)
        self.with_required_anti_affinity.pop(uid, None)
        self._count(pod, -1)
        return pod

    def replace_pod(self, pod: PodInfo) -> bool:
        """Replace the pod by its newer state, and return whether the change can affect other pods."""
        if not pod.is_same_on_its_node(self.pods[pod.uid]):
            self.remove_pod(pod.uid)
            self.add_pod(pod)
            return True
        for group in (self.pods, self.with_affinity, self.with_required_anti_affinity):
            if pod.uid in group:
                group[pod.uid] = pod
        return False

    def remember(self, key: str, answer: Any) -> None:
        if len(self.memo) >= _MOST_REMEMBERED:
            self.memo.clear()
        self.memo[key] = answer

    def _count(self, pod: PodInfo, sign: int) -> None:
        self.memo = {}
        for name, amount in pod.requests.items():
            self.requested[name] = self.requested.get(name, 0) + sign * amount
        for name in _COUNTED:
            self.counted[name] += sign * pod.counted_requests.get(name, 0)
        for protocol, address, number in pod.host_ports:
            addresses = self.ports.setdefault((protocol, number), {})
            _tally(addresses, address, sign)
        for claim in pod.claim_keys:
            _tally(self.claims, claim, sign)


def _tally(counts: dict[str, int], key: str, sign: int) -> None:
    """Add to a counter; counters that reach 0 are removed."""
    counts[key] = counts.get(key, 0) + sign
    if not counts[key]:
        del counts[key]
