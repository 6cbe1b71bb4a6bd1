"""InterPodAffinity: pods that must, must not, or prefer to share a topology domain with other pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Self

from pilothouse.machinery.objects import Json
from pilothouse.machinery.selectors.requirement import InvalidSelector
from pilothouse.scheduler.cache.node_info import NodeInfo
from pilothouse.scheduler.cache.pod_info import AffinityTerm, PodInfo
from pilothouse.scheduler.cache.tallies import Tally
from pilothouse.scheduler.cluster_events import Action, EventHint, Subject
from pilothouse.scheduler.diagnosis import Rejection
from pilothouse.scheduler.plugins.handle import Handle
from pilothouse.scheduler.plugins.interface import MAX_SCORE, CountingFilter, Plugin, PreFiltered
from pilothouse.scheduler.plugins.places import Places, count_matching_all, matches, matches_all

HARD_POD_AFFINITY_WEIGHT = 1
"""Weight of an existing pod's required affinity to the new pod."""


class InterPodAffinity(Plugin):
    name = "InterPodAffinity"

    def __init__(self, handle: Handle) -> None:
        super().__init__(handle)
        self.events = (
            EventHint(Subject.ASSIGNED_POD, Action.ADD | Action.LABELS | Action.DELETE, self._is_meant),
            EventHint(Subject.PENDING_POD, Action.LABELS),
            EventHint(Subject.NODE, Action.ADD | Action.LABELS),
        )
        self.not_near = self.reject("node(s) didn't match pod affinity rules", final=True)
        self.too_near = self.reject("node(s) didn't match pod anti-affinity rules")
        self.unwelcome = self.reject("node(s) didn't satisfy existing pods anti-affinity rules")

    def pre_filter(self, pod: PodInfo) -> PreFiltered:
        try:
            affinity_filter = _AffinityFilter(self, pod)
        except InvalidSelector as error:
            return self.reject(f"parsing pod: {error}", final=True)
        return affinity_filter if affinity_filter.has_something_to_check else None

    def score(self, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Sequence[int] | None:
        return scores(pod, nodes, self.handle)

    def _is_meant(self, pod: PodInfo, old: Json | None, new: Json | None) -> bool:
        """Return whether a required term of either pod selects the other pod."""
        others = [PodInfo(other) for other in (old, new) if other is not None]
        terms = (*pod.affinity.required, *pod.affinity.required_anti)
        return any(
            any(matches(term, other, self.handle) for term in terms)
            or any(matches(term, pod, self.handle) for term in other.affinity.required_anti)
            for other in others
        )


class _AffinityFilter(CountingFilter):
    """Pods per topology domain: wanted by the pod, unwanted by the pod, and objecting to the pod."""

    def __init__(self, plugin: InterPodAffinity, pod: PodInfo) -> None:
        self._plugin, self._handle, self._pod = plugin, plugin.handle, pod
        self._wanted, self._unwanted = pod.affinity.required, pod.affinity.required_anti
        self._near = Places(self._tally_of(self._wanted)) if self._wanted else Places()
        self._not_near = Places(*(self._tally_of((term,)) for term in self._unwanted))
        reluctant = plugin.handle.cache.with_required_anti_affinity
        self._unwelcome = Places(self._tally_of_objections(reluctant.values())) if reluctant else Places()

    @property
    def has_something_to_check(self) -> bool:
        return bool(self._wanted or self._unwanted or self._unwelcome)

    def __call__(self, node: NodeInfo, /) -> Rejection | None:
        if self._wanted and not self._is_near(node):
            return self._plugin.not_near
        if self._not_near and self._not_near.any_at(node):
            return self._plugin.too_near
        if self._unwelcome and self._unwelcome.any_at(node):
            return self._plugin.unwelcome
        return None

    def copy(self) -> Self:
        other = object.__new__(type(self))
        other.__dict__ |= self.__dict__
        other._near, other._not_near = self._near.copy(), self._not_near.copy()
        other._unwelcome = self._unwelcome.copy()
        return other

    def count(self, pod: PodInfo, node: NodeInfo, sign: int) -> None:
        for term in pod.affinity.required_anti:
            if matches(term, self._pod, self._handle):
                self._unwelcome.add(term.topology_key, node, sign)
        if matches_all(self._wanted, pod, self._handle):
            self._add(self._near, self._wanted, node, sign)
        for term in self._unwanted:
            if matches(term, pod, self._handle):
                self._not_near.add(term.topology_key, node, sign)

    def _tally_of(self, terms: Sequence[AffinityTerm]) -> Tally:
        """Return the number of pods that match all terms, by topology domain."""

        def contribution(node: NodeInfo) -> dict[str, int]:
            number = count_matching_all(terms, node, self._handle)
            return {term.topology_key: number for term in terms} if number else {}

        key = "; ".join(f"{term.key} at {term.topology_key}" for term in terms)
        return self._handle.cache.tally(key, contribution)

    def _tally_of_objections(self, nodes: Iterable[NodeInfo]) -> Tally:
        """Return the number of anti-affinity terms of existing pods that select the pod, by topology domain."""

        def contribution(node: NodeInfo) -> Counter[str]:
            return Counter(
                term.topology_key
                for other in node.with_required_anti_affinity.values()
                for term in other.affinity.required_anti
                if matches(term, self._pod, self._handle)
            )

        return self._handle.cache.tally(f"objections {self._pod.labels_key}", contribution, nodes)

    def _is_near(self, node: NodeInfo) -> bool:
        """Return whether every affinity term has a matching pod in the node's domain.

        The first pod of a self-affine group may go anywhere; otherwise the group could never start.
        """
        if any(term.topology_key not in node.labels for term in self._wanted):
            return False
        if all(self._near.count_at(term.topology_key, node) > 0 for term in self._wanted):
            return True
        return not self._near and matches_all(self._wanted, self._pod, self._handle)

    def _add(self, places: Places, terms: Iterable[AffinityTerm], node: NodeInfo, number: int) -> None:
        for term in terms:
            places.add(term.topology_key, node, number)


def scores(pod: PodInfo, nodes: Sequence[NodeInfo], handle: Handle) -> list[int] | None:
    """Return scores from 0 to 100, one per node; None without any preference."""
    tallies = [_liked_by_pod(pod, handle)] if pod.affinity.has_preferences else []
    if handle.cache.with_affinity:
        tallies.append(_liking_pod(pod, handle))
    liking = Places(*tallies)
    if not liking:
        return None
    sums = liking.sums_at(nodes)
    least, span = min(sums), max(sums) - min(sums)
    return [int(MAX_SCORE * ((total - least) / span)) if span else 0 for total in sums]


def _liked_by_pod(pod: PodInfo, handle: Handle) -> Tally:
    signed = [(1, term) for term in pod.affinity.preferred] + [(-1, term) for term in pod.affinity.preferred_anti]

    def contribution(node: NodeInfo) -> dict[str, int]:
        sums: dict[str, int] = {}
        for sign, term in signed:
            if number := count_matching_all((term,), node, handle):
                sums[term.topology_key] = sums.get(term.topology_key, 0) + sign * term.weight * number
        return sums

    key = "; ".join(f"{sign * term.weight} for {term.key} at {term.topology_key}" for sign, term in signed)
    return handle.cache.tally(key, contribution)


def _liking_pod(pod: PodInfo, handle: Handle) -> Tally:
    def contribution(node: NodeInfo) -> dict[str, int]:
        sums: dict[str, int] = {}
        for other in node.with_affinity.values():
            for topology_key, weight in _preferences_of(other, pod, handle):
                sums[topology_key] = sums.get(topology_key, 0) + weight
        return sums

    return handle.cache.tally(f"liking {pod.labels_key}", contribution, handle.cache.with_affinity.values())


def _preferences_of(other: PodInfo, pod: PodInfo, handle: Handle) -> Iterator[tuple[str, int]]:
    affinity = other.affinity
    for term in affinity.required:
        if matches(term, pod, handle):
            yield term.topology_key, HARD_POD_AFFINITY_WEIGHT
    for sign, terms in ((1, affinity.preferred), (-1, affinity.preferred_anti)):
        for term in terms:
            if matches(term, pod, handle):
                yield term.topology_key, sign * term.weight
