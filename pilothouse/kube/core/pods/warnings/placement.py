"""Warnings about where a pod may run: old node labels, and selectors that select nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pilothouse.kube.core.pods.validation.affinity import PREFERRED, REQUIRED
from pilothouse.kube.validation.node_selectors import DEPRECATED_NODE_LABELS, warnings_for_term
from pilothouse.machinery.field import Path
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.names import is_valid_label_value

_MATCHES_NOTHING = "a null labelSelector results in matching no pod"


def placement_warnings(spec: Json, path: Path) -> Iterator[str]:
    for key in sorted(spec.get("nodeSelector") or ()):
        if key in DEPRECATED_NODE_LABELS:
            yield f"{path.child('nodeSelector').key(key)}: {DEPRECATED_NODE_LABELS[key]}"
    nodes = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    at = path.child("affinity", "nodeAffinity")
    for position, term in enumerate((nodes.get(REQUIRED) or {}).get("nodeSelectorTerms") or ()):
        place = at.child(REQUIRED, "nodeSelectorTerms").index(position)
        yield from warnings_for_term(term, place)
    for position, term in enumerate(nodes.get(PREFERRED) or ()):
        place = at.child(PREFERRED).index(position).child("preference")
        yield from warnings_for_term(term.get("preference") or {}, place)
        yield from _value_warnings(term.get("preference") or {}, place.child("matchExpressions"))
    yield from _spread_warnings(spec.get("topologySpreadConstraints") or (), path.child("topologySpreadConstraints"))


def _value_warnings(term: Json, path: Path) -> Iterator[str]:
    """Values that no label can have: required terms are refused for them, preferred ones are not."""
    for position, expression in enumerate(term.get("matchExpressions") or ()):
        for index, value in enumerate(expression.get("values") or ()):
            for message in is_valid_label_value(value):
                yield f"{path.index(position).child('values').index(index)}: {value} is invalid, {message}"


def _spread_warnings(constraints: Iterable[Json], path: Path) -> Iterator[str]:
    for position, constraint in enumerate(constraints):
        key = constraint.get("topologyKey") or ""
        if key in DEPRECATED_NODE_LABELS:
            yield f"{path.index(position).child('topologyKey')}: {key} is {DEPRECATED_NODE_LABELS[key]}"
        if constraint.get("labelSelector") is None:
            yield f"{path.index(position).child('labelSelector')}: {_MATCHES_NOTHING}"


def affinity_term_warnings(spec: Json, path: Path) -> Iterator[str]:
    affinity = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        pods, at = affinity.get(kind) or {}, path.child("affinity", kind)
        for position, term in enumerate(pods.get(REQUIRED) or ()):
            if term.get("labelSelector") is None:
                yield f"{at.child(REQUIRED).index(position).child('labelSelector')}: {_MATCHES_NOTHING}"
        for position, weighted in enumerate(pods.get(PREFERRED) or ()):
            if (weighted.get("podAffinityTerm") or {}).get("labelSelector") is None:
                place = at.child(PREFERRED).index(position).child("podAffinityTerm", "labelSelector")
                yield f"{place}: {_MATCHES_NOTHING}"
