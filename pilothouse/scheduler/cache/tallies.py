"""Tallies: node values summed by topology domain, that is by the value of a node label such as zone or hostname.

Most pods resemble earlier pods, and few nodes change between two pods. So tallies are cached, and only changed nodes
are recomputed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from pilothouse.scheduler.cache.node_info import NodeInfo

Contribution: TypeAlias = Callable[[NodeInfo], Mapping[str, int]]
"""Values of a node by topology label; must depend on the node and its pods only."""

_MOST_KEPT = 64
_NOTHING: Mapping[str, int] = {}


class Tally:
    places: dict[str, dict[str, int]]  # label → label value → sum, never 0
    _by_node: dict[NodeInfo, Mapping[str, int]]  # contribution of each node, never empty

    def __init__(self, contribution: Contribution, nodes: Iterable[NodeInfo]) -> None:
        self._contribution = contribution
        self._stale = set(nodes)
        self._by_node, self.places = {}, {}

    def invalidate(self, node: NodeInfo) -> None:
        self._stale.add(node)

    def refresh(self) -> None:
        for node in self._stale:
            before = self._by_node.pop(node, _NOTHING)
            now = self._contribution(node)
            if now:
                self._by_node[node] = now
            if now != before:
                self._add(node, before, -1)
                self._add(node, now, 1)
        self._stale.clear()

    def on(self, node: NodeInfo) -> Mapping[str, int]:
        """Return the node's contribution."""
        return self._by_node.get(node, _NOTHING)

    def _add(self, node: NodeInfo, amounts: Mapping[str, int], sign: int) -> None:
        for label, amount in amounts.items():
            value = node.labels.get(label)
            if value is not None:
                sums = self.places.setdefault(label, {})
                sums[value] = sums.get(value, 0) + sign * amount
                if not sums[value]:
                    del sums[value]


class Tallies:
    """An LRU cache of tallies."""

    _kept: dict[str, Tally]  # by key; the most recently used is last

    def __init__(self) -> None:
        self._kept = {}

    def get(self, key: str, contribution: Contribution, nodes: Iterable[NodeInfo]) -> Tally:
        """Return the up-to-date tally. Equal keys must denote equal contributions."""
        tally = self._kept.pop(key, None) or Tally(contribution, nodes)
        tally.refresh()
        self._kept[key] = tally
        if len(self._kept) > _MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        return tally

    def invalidate(self, node: NodeInfo) -> None:
        """Mark the node's contributions stale after a change of its pods."""
        for tally in self._kept.values():
            tally.invalidate(node)

    def clear(self) -> None:
        """Drop all tallies after nodes came, went or changed labels."""
        self._kept.clear()
