"""Numbers that nodes have, summed up by place: a place is a value of a node label, such as a zone or the node itself.

Most pods are of a kind of which there were many before, and since the last of them little has changed. So the sums are
kept, and only nodes on which something changed are asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from pilothouse.scheduler.cache.node_info import NodeInfo

Contribution: TypeAlias = Callable[[NodeInfo], Mapping[str, int]]
"""How much a node has, by the labels that name the places where it counts. Depends on the node and its pods alone."""

_MOST_KEPT = 64
_NOTHING: Mapping[str, int] = {}


class Tally:
    places: dict[str, dict[str, int]]  # label → its value → sum; no sum is 0
    _by_node: dict[NodeInfo, Mapping[str, int]]  # what each node has contributed; none is empty

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
        """Return what the node has."""
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
    """Those that were asked for last."""

    _kept: dict[str, Tally]  # by what is counted, the one used last at the end

    def __init__(self) -> None:
        self._kept = {}

    def get(self, key: str, contribution: Contribution, nodes: Iterable[NodeInfo]) -> Tally:
        """Return the sums over the nodes, up to date. Equal keys stand for equal contributions."""
        tally = self._kept.pop(key, None) or Tally(contribution, nodes)
        tally.refresh()
        self._kept[key] = tally
        if len(self._kept) > _MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        return tally

    def invalidate(self, node: NodeInfo) -> None:
        """The node's pods have changed."""
        for tally in self._kept.values():
            tally.invalidate(node)

    def clear(self) -> None:
        """Nodes have come, gone or changed their places."""
        self._kept.clear()
