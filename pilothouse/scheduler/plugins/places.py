"""Pod counts by topology domain: by the value of a node label such as zone or hostname."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.scheduler.cache.node_info import NodeInfo
from pilothouse.scheduler.cache.tallies import Tally


class Places:
    _counts: dict[str, dict[str, int]]  # topology key → value → count, never 0

    def __init__(self, *tallies: Tally) -> None:
        """Sum the tallies. The tallies stay unchanged: `add` works on copies."""
        self._counts = dict(tallies[0].places) if tallies else {}
        for tally in tallies[1:]:
            for topology_key, values in tally.places.items():
                self._counts[topology_key] = _sum(self._counts.get(topology_key), values)

    def __bool__(self) -> bool:
        return any(self._counts.values())

    def add(self, topology_key: str, node: NodeInfo, number: int) -> None:
        """Add to the node's domain; a no-op for nodes without the label."""
        value = node.labels.get(topology_key)
        if value is None:
            return
        values = self._counts.setdefault(topology_key, {})
        values[value] = values.get(value, 0) + number
        if not values[value]:
            del values[value]

    def count_at(self, topology_key: str, node: NodeInfo) -> int:
        value = node.labels.get(topology_key)
        return self._counts.get(topology_key, {}).get(value, 0) if value is not None else 0

    def any_at(self, node: NodeInfo) -> bool:
        for topology_key, values in self._counts.items():
            if values.get(node.labels.get(topology_key, ""), 0) > 0:
                return True
        return False

    def sums_at(self, nodes: Iterable[NodeInfo]) -> list[int]:
        """Return for each node the sum over all its domains."""
        nodes = list(nodes)
        sums = [0] * len(nodes)
        for key, values in self._counts.items():
            sums = [before + values.get(node.labels.get(key, ""), 0) for before, node in zip(sums, nodes, strict=True)]
        return sums

    def copy(self) -> Places:
        other = Places()
        other._counts = {key: dict(values) for key, values in self._counts.items()}
        return other


def _sum(one: dict[str, int] | None, other: dict[str, int]) -> dict[str, int]:
    if not one:
        return other
    return {value: one.get(value, 0) + other.get(value, 0) for value in one.keys() | other.keys()}
