"""Labels of nodes that have newer names: which they are, and what to say to those who still use them."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.machinery.field import Path
from pilothouse.machinery.objects import Json, items, part

DEPRECATED_NODE_LABELS = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}

BETA_TO_GA = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
}
"""Labels whose newer name may replace them in objects that otherwise do not change."""


def warnings_for_term(term: Json, path: Path) -> Iterable[str]:
    """For a term of a node selector, or for any selector with matchExpressions on nodes."""
    for position, expression in enumerate(items(term, "matchExpressions")):
        key = expression.get("key") or ""
        if message := DEPRECATED_NODE_LABELS.get(key):
            yield f"{path.child('matchExpressions').index(position).child('key')}: {key} is {message}"


def warnings_for_selector(selector: Json | None, path: Path) -> Iterable[str]:
    yield from warnings_for_term(selector or {}, path)
    for label in sorted(part(selector or {}, "matchLabels")):
        if message := DEPRECATED_NODE_LABELS.get(label):
            yield f"{path.child('matchLabels', label)}: {message}"
