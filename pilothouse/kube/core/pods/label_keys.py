"""matchLabelKeys: the values that a new pod has for these labels become part of the selectors beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pilothouse.apiserver.server.features import enabled
from pilothouse.kube.core.pods.validation.affinity import PREFERRED, REQUIRED
from pilothouse.machinery.objects import Json, labels_of


def select_own_label_values(pod: Json) -> None:
    labels, spec = labels_of(pod), pod.get("spec") or {}
    for term in _affinity_terms(spec.get("affinity") or {}):
        _add(term, term.get("matchLabelKeys"), "In", labels)
        _add(term, term.get("mismatchLabelKeys"), "NotIn", labels)
    if not enabled("MatchLabelKeysInPodTopologySpreadSelectorMerge"):
        return
    for constraint in spec.get("topologySpreadConstraints") or ():
        _add(constraint, constraint.get("matchLabelKeys"), "In", labels)


def _affinity_terms(affinity: Json) -> Iterator[Json]:
    for kind in ("podAffinity", "podAntiAffinity"):
        pods = affinity.get(kind) or {}
        yield from (weighted["podAffinityTerm"] for weighted in pods.get(PREFERRED) or ())
        yield from pods.get(REQUIRED) or ()


def _add(term: Json, keys: Iterable[str] | None, operator: str, labels: Mapping[str, str]) -> None:
    selector = term.get("labelSelector")
    # Without a selector nothing is selected, whatever the keys.
    if selector is None:
        return
    for key in keys or ():
        if key in labels:
            expression = {"key": key, "operator": operator, "values": [labels[key]]}
            selector.setdefault("matchExpressions", []).append(expression)
