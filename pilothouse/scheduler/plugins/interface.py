"""What a plugin can do. It overrides the methods of the extension points at which `table.py` has it.

A plugin keeps nothing about a single pod: what it finds out beforehand is in the filter that it returns, which lives
as long as the attempt.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Protocol, Self, TypeAlias

from pilothouse.machinery.dataclass import dataclass
from pilothouse.scheduler.cache.node_info import NodeInfo
from pilothouse.scheduler.cache.pod_info import PodInfo
from pilothouse.scheduler.cluster_events import EventHint
from pilothouse.scheduler.diagnosis import Rejection
from pilothouse.scheduler.plugins.handle import Handle

MAX_SCORE = 100


class NodeFilter(Protocol):
    """Says about one node after the other why it is not for the pod; None if it may be."""

    def __call__(self, node: NodeInfo, /) -> Rejection | None: ...


class CountingFilter(ABC):
    """A filter that looks beyond the node. To see what would be, it is copied and told of pods that come or go."""

    @abstractmethod
    def __call__(self, node: NodeInfo, /) -> Rejection | None: ...

    @abstractmethod
    def copy(self) -> Self: ...

    @abstractmethod
    def count(self, pod: PodInfo, node: NodeInfo, sign: int) -> None: ...


@dataclass(frozen=True, slots=True)
class OnlyNodes:
    """Only these nodes need be looked at, with the filter if there is one."""

    names: frozenset[str]
    filter: NodeFilter | None = None


PreFiltered: TypeAlias = NodeFilter | OnlyNodes | Rejection | None
"""None if the plugin has nothing against any node, a Rejection if it has against all."""


class Plugin:
    name: ClassVar[str]
    events: tuple[EventHint, ...] = ()
    """The changes that may undo a rejection by this plugin."""

    def __init__(self, handle: Handle) -> None:
        self.handle = handle

    def pre_enqueue(self, pod: PodInfo) -> str | None:
        """Return why the pod must not be tried yet."""
        raise NotImplementedError

    def pre_filter(self, pod: PodInfo) -> PreFiltered:
        """Find out what the nodes are to be judged by. Called once, before the first node."""
        raise NotImplementedError

    def score(self, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Sequence[int] | None:
        """Return how good each node is, from 0 to 100; None if they are all the same."""
        raise NotImplementedError

    def reserve(self, pod: PodInfo, node: NodeInfo) -> None:
        """Take what the pod needs on the node. Raises ReserveFailed."""
        raise NotImplementedError

    def unreserve(self, pod: PodInfo, node_name: str) -> None:
        """Give it back; also if nothing was taken."""
        raise NotImplementedError

    def has_pre_bind(self, pod: PodInfo) -> bool:
        """Return whether `pre_bind` has something to do."""
        raise NotImplementedError

    async def pre_bind(self, pod: PodInfo, node_name: str) -> None:
        """Do what must be done before the pod is bound. An error gives the attempt up."""
        raise NotImplementedError

    def reject(self, *reasons: str, final: bool = False) -> Rejection:
        return Rejection(self.name, reasons, final)


def normalized(scores: Sequence[int], *, reverse: bool = False) -> list[int]:
    """Return the scores so that the greatest is 100; reversed, so that it is 0."""
    greatest = max(scores, default=0)
    if greatest == 0:
        return [MAX_SCORE if reverse else 0] * len(scores)
    scaled = [MAX_SCORE * score // greatest for score in scores]
    return [MAX_SCORE - score for score in scaled] if reverse else scaled
