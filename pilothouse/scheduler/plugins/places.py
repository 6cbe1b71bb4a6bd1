"""How many pods there are at a place: a value of a node label, such as a zone or the node itself."""

from __future__ import annotations

from pilothouse.scheduler.cache.node_info import NodeInfo


class Places:
    _counts: dict[str, dict[str, int]]  # topology key → value → number; none is 0 or empty

    def __init__(self) -> None:
        self._counts = {}

    def __bool__(self) -> bool:
        return bool(self._counts)

    def add(self, topology_key: str, node: NodeInfo, number: int) -> None:
        """A node without the label is at no place."""
        value = node.labels.get(topology_key)
        if value is None:
            return
        values = self._counts.setdefault(topology_key, {})
        values[value] = values.get(value, 0) + number
        if not values[value]:
            del values[value]
        if not values:
            del self._counts[topology_key]

    def count_at(self, topology_key: str, node: NodeInfo) -> int:
        value = node.labels.get(topology_key)
        return self._counts.get(topology_key, {}).get(value, 0) if value is not None else 0

    def any_at(self, node: NodeInfo) -> bool:
        for topology_key, values in self._counts.items():
            if values.get(node.labels.get(topology_key, ""), 0) > 0:
                return True
        return False

    def sum_at(self, node: NodeInfo) -> int:
        return sum(values.get(node.labels.get(key, ""), 0) for key, values in self._counts.items())

    def copy(self) -> Places:
        other = Places()
        other._counts = {key: dict(values) for key, values in self._counts.items()}
        return other
