"""Node eligibility of DaemonSet pods, and pod templates bound to one node by affinity, with daemon tolerations."""

from __future__ import annotations

from typing import NamedTuple

from pilothouse.apiserver.server.features import enabled
from pilothouse.controllers.workloads.pod_control import CONTROLLER_REVISION_HASH
from pilothouse.kinds.node_affinity import node_affinity_of, required_node_affinity
from pilothouse.kinds.pods import node_name
from pilothouse.kinds.tolerations import NO_EXECUTE, NO_SCHEDULE, first_untolerated, with_toleration
from pilothouse.machinery.gofmt import parse_int64
from pilothouse.machinery.objects import Json, annotations_of, labels_of, name_of, part

GENERATION_ANNOTATION = "deprecated.daemonset.template.generation"
GENERATION_LABEL = "pod-template-generation"
_NODE_NAME = "metadata.name"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_TOLERATED = (
    ("not-ready", NO_EXECUTE),
    ("unreachable", NO_EXECUTE),
    ("disk-pressure", NO_SCHEDULE),
    ("memory-pressure", NO_SCHEDULE),
    ("pid-pressure", NO_SCHEDULE),
    ("unschedulable", NO_SCHEDULE),
)
_TOLERATED_ON_HOST_NETWORK = (("network-unavailable", NO_SCHEDULE),)


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


def daemon_tolerations(spec: Json) -> list[Json]:
    """Return the spec's tolerations plus the default daemon tolerations."""
    tolerations: list[Json] = list(spec.get("tolerations") or ())
    for name, effect in _TOLERATED + (_TOLERATED_ON_HOST_NETWORK if spec.get("hostNetwork") else ()):
        added = {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": effect}
        tolerations = with_toleration(tolerations, added)
    return tolerations


def template_generation(daemon_set: Json) -> int | None:
    """Return the template generation of extensions/v1beta1; None if missing or invalid."""
    text = annotations_of(daemon_set).get(GENERATION_ANNOTATION)
    try:
        return None if text is None else parse_int64(text)
    except ValueError:
        return None


def daemon_template(daemon_set: Json, digest: str) -> Json:
    """Return the pod template with the labels of this revision and the daemon tolerations."""
    template = daemon_set["spec"]["template"]
    labels = dict(labels_of(template))
    if (generation := template_generation(daemon_set)) is not None:
        labels[GENERATION_LABEL] = str(generation)
    if digest:
        labels[CONTROLLER_REVISION_HASH] = digest
    spec = {**template["spec"], "tolerations": daemon_tolerations(template["spec"])}
    return {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}, "spec": spec}


def template_on_node(template: Json, node: str) -> Json:
    """Return the template with required node affinity replaced by this node."""
    only = {"matchFields": [{"key": _NODE_NAME, "operator": "In", "values": [node]}]}
    required = {**(node_affinity_of(template).get(_REQUIRED) or {}), "nodeSelectorTerms": [only]}
    affinity = {
        **(template["spec"].get("affinity") or {}),
        "nodeAffinity": {**node_affinity_of(template), _REQUIRED: required},
    }
    return {**template, "spec": {**template["spec"], "affinity": affinity}}


def target_node(pod: Json) -> str | None:
    """Return the node that the pod runs on or targets; None without a target."""
    if node := node_name(pod):
        return str(node)
    for term in (node_affinity_of(pod).get(_REQUIRED) or {}).get("nodeSelectorTerms") or ():
        for expression in term.get("matchFields") or ():
            if expression.get("key") == _NODE_NAME and expression.get("operator") == "In":
                values = expression.get("values") or []
                return str(values[0]) if len(values) == 1 else None
    return None


def is_updated(pod: Json, digest: str, generation: int | None) -> bool:
    """Return whether the pod has this revision hash or template generation."""
    labels = labels_of(pod)
    if digest and labels.get(CONTROLLER_REVISION_HASH) == digest:
        return True
    return generation is not None and labels.get(GENERATION_LABEL) == str(generation)
