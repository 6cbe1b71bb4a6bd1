"""Reasons for a failed cycle: per node for preemption, and as text for events."""

from __future__ import annotations

from collections import Counter
from dataclasses import field

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.status_error import PilothouseError


@dataclass(frozen=True, slots=True)
class Rejection:
    """A plugin's rejection of a node."""

    plugin: str
    reasons: tuple[str, ...]
    is_final: bool = False
    """Whether the rejection would remain without the pods of lower priority."""

    @property
    def message(self) -> str:
        return ", ".join(self.reasons)


class NoNodesAvailable(PilothouseError):
    """The cluster has no nodes."""

    def __init__(self) -> None:
        super().__init__("no nodes available to schedule pods")


@dataclass(slots=True)
class Diagnosis:
    """Rejections by node. `for_absent` applies to nodes that were not examined."""

    nodes: dict[str, Rejection] = field(default_factory=dict)
    for_absent: Rejection | None = None
    pre_filter_message: str = ""
    post_filter_message: str = ""
    plugins: set[str] = field(default_factory=set)
    """Plugins that rejected the pod; only their events can requeue the pod."""

    def reject(self, node: str, rejection: Rejection) -> None:
        self.nodes[node] = rejection
        self.plugins.add(rejection.plugin)

    def may_be_resolved(self, node: str) -> bool:
        """Return whether the node might become feasible if pods were evicted."""
        rejection = self.nodes.get(node, self.for_absent)
        return rejection is not None and not rejection.is_final


class FitError(PilothouseError):
    """No node is feasible."""

    def __init__(self, diagnosis: Diagnosis, all_nodes: int) -> None:
        super().__init__()
        self.diagnosis, self.all_nodes = diagnosis, all_nodes

    def __str__(self) -> str:
        diagnosis = self.diagnosis
        text = f"0/{self.all_nodes} nodes are available:"
        if diagnosis.pre_filter_message:
            text += f" {diagnosis.pre_filter_message}."
        elif reasons := self._reasons():
            text += f" {', '.join(reasons)}."
        return f"{text} {diagnosis.post_filter_message}" if diagnosis.post_filter_message else text

    def _reasons(self) -> list[str]:
        """Return each reason with its number of nodes, sorted as text, like upstream."""
        nodes, absent = self.diagnosis.nodes, self.diagnosis.for_absent
        counts = Counter(reason for rejection in nodes.values() for reason in rejection.reasons)
        if absent is not None and len(nodes) < self.all_nodes:
            counts.update({reason: self.all_nodes - len(nodes) for reason in absent.reasons})
        return sorted(f"{count} {reason}" for reason, count in counts.items())
