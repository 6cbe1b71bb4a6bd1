"""Pod affinity and anti-affinity terms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, namespace_of
from pilothouse.machinery.selectors.labels import NOTHING, Selector, from_label_selector


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    topology_key: str
    namespaces: frozenset[str]
    selector: Selector
    namespace_selector: Selector
    weight: int = 0
    """Weight of a preferred term; 0 for required terms."""
    key: str = ""
    """Equal for terms that select the same pods."""

    def matches(self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]) -> bool:
        """Return whether the term selects a pod with these labels in this namespace."""
        inside = namespace in self.namespaces or self.namespace_selector.matches(namespace_labels)
        return inside and self.selector.matches(labels)


@dataclass(frozen=True, slots=True)
class PodAffinity:
    """All affinity terms of a pod."""

    required: tuple[AffinityTerm, ...] = ()
    required_anti: tuple[AffinityTerm, ...] = ()
    preferred: tuple[AffinityTerm, ...] = ()
    preferred_anti: tuple[AffinityTerm, ...] = ()

    @property
    def has_preferences(self) -> bool:
        return bool(self.preferred or self.preferred_anti)


NO_AFFINITY = PodAffinity()


def pod_affinity(pod: Json) -> PodAffinity:
    """Parse the pod's affinity. Raises InvalidSelector."""
    affinity = pod["spec"].get("affinity") or {}
    wanted, unwanted = affinity.get("podAffinity") or {}, affinity.get("podAntiAffinity") or {}
    if not (wanted or unwanted):
        return NO_AFFINITY
    namespace = namespace_of(pod)
    return PodAffinity(
        required=_required(wanted, namespace),
        required_anti=_required(unwanted, namespace),
        preferred=_preferred(wanted, namespace),
        preferred_anti=_preferred(unwanted, namespace),
    )


def _required(affinity: Json, namespace: str) -> tuple[AffinityTerm, ...]:
    terms: Iterable[Json] = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
    return tuple(_term(term, namespace) for term in terms)


def _preferred(affinity: Json, namespace: str) -> tuple[AffinityTerm, ...]:
    terms: Iterable[Json] = affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    return tuple(_term(term["podAffinityTerm"], namespace, term["weight"]) for term in terms)


def _term(term: Json, namespace: str, weight: int = 0) -> AffinityTerm:
    """Parse a term. Without namespaces and namespaceSelector, a term selects in the pod's own namespace."""
    named, selecting = term.get("namespaces") or (), term.get("namespaceSelector")
    namespaces = frozenset(named) if named or selecting is not None else frozenset((namespace,))
    selector = from_label_selector(term.get("labelSelector"))
    among = NOTHING if selecting is None else from_label_selector(selecting)
    where = f"{sorted(namespaces)} {among}" if among.selectable else str(sorted(namespaces))
    what = str(selector) if selector.selectable else "-"
    return AffinityTerm(term["topologyKey"], namespaces, selector, among, weight, f"term {where} {what}")
