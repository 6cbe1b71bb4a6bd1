"""Why a pod found no node: per node for preemption, and in words for whoever reads events."""

from __future__ import annotations

from collections import Counter
from dataclasses import field

from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Rejection:
    """A plugin's no."""

    plugin: str
    reasons: tuple[str, ...]
    is_final: bool = False
    """Whether it would still be a no if all pods of less priority were gone."""

    @property
    def message(self) -> str:
        return ", ".join(self.reasons)


class NoNodesAvailable(Exception):
    """There are no nodes at all."""

    def __init__(self) -> None:
        super().__init__("no nodes available to schedule pods")


@dataclass(slots=True)
class Diagnosis:
    """The rejections of all nodes that were looked at. Those that were not have been rejected for the same reason."""

    nodes: dict[str, Rejection] = field(default_factory=dict)
    for_absent: Rejection | None = None
    pre_filter_message: str = ""
    post_filter_message: str = ""
    plugins: set[str] = field(default_factory=set)
    """Those to which the pod owes that it was rejected: only what concerns them can change anything."""

    def reject(self, node: str, rejection: Rejection) -> None:
        self.nodes[node] = rejection
        self.plugins.add(rejection.plugin)

    def may_be_resolved(self, node: str) -> bool:
        """Return whether the node might do if pods were removed from it."""
        rejection = self.nodes.get(node, self.for_absent)
        return rejection is not None and not rejection.is_final


class FitError(Exception):
    """No node fits."""

    def __init__(self, diagnosis: Diagnosis, all_nodes: int) -> None:
        super().__init__()
        self.diagnosis, self.all_nodes = diagnosis, all_nodes

    def __str__(self) -> str:
        found = self.diagnosis
        text = f"0/{self.all_nodes} nodes are available:"
        if found.pre_filter_message:
            text += f" {found.pre_filter_message}."
        elif reasons := self._reasons():
            text += f" {', '.join(reasons)}."
        return f"{text} {found.post_filter_message}" if found.post_filter_message else text

    def _reasons(self) -> list[str]:
        """Return the reasons with how many nodes have each, ordered as text, as upstream does."""
        nodes, absent = self.diagnosis.nodes, self.diagnosis.for_absent
        counts = Counter(reason for rejection in nodes.values() for reason in rejection.reasons)
        if absent is not None and len(nodes) < self.all_nodes:
            counts.update({reason: self.all_nodes - len(nodes) for reason in absent.reasons})
        return sorted(f"{count} {reason}" for reason, count in counts.items())
