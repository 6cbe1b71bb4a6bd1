"""The framework: the plugins of a profile, one method per extension point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pilothouse.machinery.dataclass import dataclass
from pilothouse.scheduler.cache.node_info import NodeInfo
from pilothouse.scheduler.cache.pod_info import PodInfo
from pilothouse.scheduler.cluster_events import EventHint
from pilothouse.scheduler.diagnosis import Rejection
from pilothouse.scheduler.plugins import table
from pilothouse.scheduler.plugins.handle import Handle
from pilothouse.scheduler.plugins.interface import CountingFilter, NodeFilter, OnlyNodes, Plugin


@dataclass(frozen=True, slots=True)
class PodFilters:
    """The node filters of one pod."""

    checks: tuple[NodeFilter, ...] = ()
    names: frozenset[str] | None = None
    """Names of the only candidate nodes; None admits all nodes."""
    narrowed_by: tuple[str, ...] = ()
    """Plugins that restricted `names`."""

    def check(self, node: NodeInfo) -> Rejection | None:
        """Return the first rejection."""
        for check in self.checks:
            if (rejection := check(node)) is not None:
                return rejection
        return None

    def copy(self) -> PodFilters:
        """Return a copy that accepts hypothetical pods."""
        copied = (check.copy() if isinstance(check, CountingFilter) else check for check in self.checks)
        return PodFilters(tuple(copied), self.names, self.narrowed_by)

    def add_pod(self, pod: PodInfo, node: NodeInfo) -> None:
        node.add_pod(pod)
        self._count(pod, node, 1)

    def remove_pod(self, pod: PodInfo, node: NodeInfo) -> None:
        node.remove_pod(pod.uid)
        self._count(pod, node, -1)

    def _count(self, pod: PodInfo, node: NodeInfo, sign: int) -> None:
        for check in self.checks:
            if isinstance(check, CountingFilter):
                check.count(pod, node, sign)


class Framework:
    """Creates each plugin once, regardless of its number of extension points."""

    def __init__(self, handle: Handle) -> None:
        self.handle = handle
        self._made: dict[type[Plugin], Plugin] = {}
        self._pre_enqueue = [self._plugin(plugin) for plugin in table.PRE_ENQUEUE]
        self._filter = [self._plugin(plugin) for plugin in table.FILTER]
        self._score = [(self._plugin(plugin), weight) for plugin, weight in table.SCORE]
        self._reserve = [self._plugin(plugin) for plugin in table.RESERVE]
        self._pre_bind = [self._plugin(plugin) for plugin in table.PRE_BIND]

    def event_hints(self) -> Mapping[str, Sequence[EventHint]]:
        return {plugin.name: plugin.events for plugin in self._made.values()}

    def pre_enqueue(self, pod: PodInfo) -> str:
        """Return the name of the first plugin that blocks the pod from the queue; empty if no plugin blocks."""
        return next((plugin.name for plugin in self._pre_enqueue if plugin.pre_enqueue(pod)), "")

    def pre_filter(self, pod: PodInfo) -> PodFilters | Rejection:
        """Return the node filters of the pod, or a rejection that holds for every node."""
        checks: list[NodeFilter] = []
        names: frozenset[str] | None = None
        narrowed_by: list[str] = []
        for plugin in self._filter:
            found = plugin.pre_filter(pod)
            if isinstance(found, Rejection):
                return found
            if isinstance(found, OnlyNodes):
                names = found.names if names is None else names & found.names
                narrowed_by.append(plugin.name)
                found = found.filter
                if not names:
                    one, many = (
                        "node(s) didn't satisfy plugin {} ",
                        "node(s) didn't satisfy plugins [{}] simultaneously",
                    )
                    text = (
                        one.format(narrowed_by[0]).strip()
                        if len(narrowed_by) == 1
                        else many.format(" ".join(narrowed_by))
                    )
                    return Rejection(narrowed_by[-1], (text,), is_final=True)
            if found is not None:
                checks.append(found)
        return PodFilters(tuple(checks), names, tuple(narrowed_by))

    def scores(self, pod: PodInfo, nodes: Sequence[NodeInfo]) -> list[int]:
        totals = [0] * len(nodes)
        for plugin, weight in self._score:
            scores = plugin.score(pod, nodes)
            if scores is not None:
                totals = [total + weight * score for total, score in zip(totals, scores, strict=True)]
        return totals

    def reserve(self, pod: PodInfo, node: NodeInfo) -> None:
        """Reserve in all plugins. If a plugin raises, undo the earlier reservations and re-raise."""
        try:
            for plugin in self._reserve:
                plugin.reserve(pod, node)
        except Exception:
            self.unreserve(pod, node.name)
            raise

    def unreserve(self, pod: PodInfo, node_name: str) -> None:
        for plugin in reversed(self._reserve):
            plugin.unreserve(pod, node_name)

    def has_pre_bind(self, pod: PodInfo) -> bool:
        return any(plugin.has_pre_bind(pod) for plugin in self._pre_bind)

    async def pre_bind(self, pod: PodInfo, node_name: str) -> None:
        for plugin in self._pre_bind:
            if plugin.has_pre_bind(pod):
                await plugin.pre_bind(pod, node_name)

    def _plugin(self, kind: type[Plugin]) -> Plugin:
        if kind not in self._made:
            self._made[kind] = kind(self.handle)
        return self._made[kind]
