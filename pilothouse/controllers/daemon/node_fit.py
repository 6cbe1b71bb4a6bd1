"""Node eligibility of DaemonSet pods: to be created, or allowed to stay."""

from __future__ import annotations

from typing import NamedTuple

from pilothouse.apiserver.server.features import enabled
from pilothouse.controllers.daemon.pod_template import daemon_tolerations
from pilothouse.kinds.node_affinity import required_node_affinity
from pilothouse.kinds.tolerations import NO_EXECUTE, first_untolerated
from pilothouse.machinery.objects import Json, name_of, part


class Fit(NamedTuple):
    should_run: bool
    """Whether the node should get a pod."""
    may_stay: bool
    """Whether a running pod may stay."""


_FITS, _STAYS, _NEVER = Fit(True, True), Fit(False, True), Fit(False, False)


class NodeFit:
    """Node requirements of a DaemonSet's template, parsed once for many nodes."""

    def __init__(self, daemon_set: Json) -> None:
        spec = daemon_set["spec"]["template"]["spec"]
        self._node_name = spec.get("nodeName") or ""
        self._affinity = required_node_affinity({"spec": spec})
        self._tolerations = daemon_tolerations(spec)
        self._comparisons = enabled("TaintTolerationComparisonOperators")

    def of(self, node: Json) -> Fit:
        """Return the node's eligibility. NoSchedule taints let running pods stay."""
        if self._node_name and self._node_name != name_of(node):
            return _NEVER
        if not self._affinity.matches(node):
            return _NEVER
        taints = part(node, "spec").get("taints")
        if not taints or first_untolerated(taints, self._tolerations, comparisons=self._comparisons) is None:
            return _FITS
        drives_out = first_untolerated(taints, self._tolerations, {NO_EXECUTE}, comparisons=self._comparisons)
        return _STAYS if drives_out is None else _NEVER


class NodeFits:
    """Cache of NodeFit per DaemonSet, invalidated by spec changes."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, NodeFit]] = {}

    def of(self, daemon_set: Json) -> NodeFit:
        meta = daemon_set["metadata"]
        uid, generation = meta["uid"], meta.get("generation") or 0
        known = self._known.get(uid)
        if known is None or known[0] != generation:
            known = self._known[uid] = (generation, NodeFit(daemon_set))
        return known[1]

    def forget(self, daemon_set: Json) -> None:
        self._known.pop(daemon_set["metadata"]["uid"], None)
