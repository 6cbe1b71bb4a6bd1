"""The plugin interface. A plugin overrides the methods of its extension points in `table.py`.

A plugin keeps no state about single pods: pre-computed data lives in the returned filter, for one cycle.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Generic, Protocol, Self, TypeAlias, TypeVar

from pilothouse.machinery.dataclass import dataclass
from pilothouse.scheduler.cache.node_info import NodeInfo
from pilothouse.scheduler.cache.pod_info import PodInfo
from pilothouse.scheduler.cluster_events import EventHint
from pilothouse.scheduler.diagnosis import Rejection
from pilothouse.scheduler.plugins.handle import Handle

MAX_SCORE = 100
T = TypeVar("T")


class NodeFilter(Protocol):
    """Returns the rejection of a node, or None if the node passes."""

    def __call__(self, node: NodeInfo, /) -> Rejection | None: ...


class CountingFilter(ABC):
    """A filter with state beyond one node. For simulations, the filter is copied and updated with added or removed
    pods."""

    @abstractmethod
    def __call__(self, node: NodeInfo, /) -> Rejection | None: ...

    @abstractmethod
    def copy(self) -> Self: ...

    @abstractmethod
    def count(self, pod: PodInfo, node: NodeInfo, sign: int) -> None: ...


@dataclass(frozen=True, slots=True)
class OnlyNodes:
    """Restricts the search to these nodes, with an optional filter."""

    names: frozenset[str]
    filter: NodeFilter | None = None


PreFiltered: TypeAlias = NodeFilter | OnlyNodes | Rejection | None
"""None accepts every node; a Rejection rejects every node."""


class Plugin:
    name: ClassVar[str]
    events: tuple[EventHint, ...] = ()
    """Changes that may revoke a rejection by this plugin."""

    def __init__(self, handle: Handle) -> None:
        self.handle = handle

    def pre_enqueue(self, pod: PodInfo) -> str | None:
        """Return the reason to keep the pod out of the active queue; None admits the pod."""
        raise NotImplementedError

    def pre_filter(self, pod: PodInfo) -> PreFiltered:
        """Prepare the filter of one cycle. Called once, before the first node."""
        raise NotImplementedError

    def score(self, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Sequence[int] | None:
        """Return a score from 0 to 100 per node; None if all nodes are equal."""
        raise NotImplementedError

    def reserve(self, pod: PodInfo, node: NodeInfo) -> None:
        """Reserve the pod's resources on the node. Raises ReserveFailed."""
        raise NotImplementedError

    def unreserve(self, pod: PodInfo, node_name: str) -> None:
        """Release the reservation; a no-op without a reservation."""
        raise NotImplementedError

    def has_pre_bind(self, pod: PodInfo) -> bool:
        """Return whether `pre_bind` has work for the pod."""
        raise NotImplementedError

    async def pre_bind(self, pod: PodInfo, node_name: str) -> None:
        """Run the work required before binding. An exception aborts the attempt."""
        raise NotImplementedError

    def reject(self, *reasons: str, final: bool = False) -> Rejection:
        return Rejection(self.name, reasons, final)


class ReservingPlugin(Plugin, Generic[T]):
    """A plugin that keeps a reservation for each pod until `pre_bind` has written it."""

    def __init__(self, handle: Handle) -> None:
        super().__init__(handle)
        self._reserved: dict[str, T] = {}
        """Pod uid → reservation."""

    def has_pre_bind(self, pod: PodInfo) -> bool:
        return pod.uid in self._reserved


def normalized(scores: Sequence[int], *, reverse: bool = False) -> list[int]:
    """Scale the scores to a maximum of 100; `reverse` maps the greatest score to 0."""
    greatest = max(scores, default=0)
    if greatest == 0:
        return [MAX_SCORE if reverse else 0] * len(scores)
    scaled = [MAX_SCORE * score // greatest for score in scores]
    return [MAX_SCORE - score for score in scaled] if reverse else scaled
